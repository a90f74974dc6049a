"""A byte a number, and a scale for each block of them.

Source: Dettmers et al., "8-bit Optimizers via Block-wise Quantization", ICLR 2022, section 2.1,
with linear steps.
"""

from backend.pipeline.codecs.codec import Codec, Numbers

BLOCK = 256
"""Numbers that share a scale."""
SCALE = 4
"""Bytes of one, a float32."""


def _bytes(numbers: Numbers) -> int:
    return numbers.count + SCALE * -(-numbers.count // BLOCK)


INT8 = Codec(
    "int8",
    "int8 in blocks",
    f"Each number in 255 steps of the largest of its block of {BLOCK}: about a quarter of the "
    "bytes of float32.",
    _bytes,
    _bytes,
)
