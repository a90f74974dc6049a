"""Of each training sample what has changed since it passed last, in few bits.

Source: Wang et al., "Fine-tuning Language Models over Slow Networks using Activation Quantization
with Guarantees" (AQ-SGD), NeurIPS 2022. Both ends of a cut hold m of each sample. The first time
x is sent and m = x; later Q(x - m), and both add it to m, which is what is read. Gradients are
coded without a memory. Q is ours: steps of the largest of a block (`blocks`).
"""

from functools import partial

from backend.pipeline.codecs.blocks import eight_bits, four_bits, packed_bytes, scale_bytes
from backend.pipeline.codecs.codec import ByteRule, Codec, Numbers


def _forth(bits: int, numbers: Numbers) -> int:
    """Of samples that pass for the first time all numbers, of the others their differences."""
    if not numbers.rows or not numbers.is_by_sample:
        return numbers.bytes
    known = (numbers.rows - numbers.new) * numbers.per_row
    return (
        numbers.new * numbers.per_row * numbers.width
        + scale_bytes(known)
        + packed_bytes(known, bits)
    )


def _differences(bits: int, back: int, gradient: ByteRule) -> Codec:
    return Codec(
        f"aq{bits}",
        f"changes in {bits} bits, int{back} back",
        f"Of each training sample what has changed since the epoch before, in {2**bits - 1} steps "
        f"(AQ-SGD); gradients as int{back}. The first epoch goes plain. Both ends keep the "
        "activations of every sample: for small sets whose samples come again as they were.",
        partial(_forth, bits),
        gradient,
        is_close=False,
        keeps_samples=True,
    )


AQ4 = _differences(4, 8, eight_bits)
AQ2 = _differences(2, 4, four_bits)
