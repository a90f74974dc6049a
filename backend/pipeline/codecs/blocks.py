"""A byte or half a byte a number, and a scale for each block of them.

Source: Dettmers et al., "8-bit Optimizers via Block-wise Quantization", ICLR 2022, section 2.1,
with linear steps (int8, int4) or those of 8-bit floating point (Micikevicius et al., "FP8 Formats
for Deep Learning", arXiv 2209.05433: E4M3 forward, E5M2 back). Four bits forward and eight back:
Wang et al., "Fine-tuning Language Models over Slow Networks using Activation Quantization with
Guarantees", NeurIPS 2022, section 4, whose plain rule this is.
"""

from backend.pipeline.codecs.codec import Codec, Numbers

BLOCK = 256
"""Numbers that share a scale."""
SCALE = 4
"""Bytes of one, a float32."""


def packed_bytes(count: int, bits: int) -> int:
    """Bytes of so many numbers of so many bits, side by side."""
    return -(-count * bits // 8)


def scale_bytes(count: int) -> int:
    """Bytes of the scales of so many numbers."""
    return SCALE * -(-count // BLOCK)


def eight_bits(numbers: Numbers) -> int:
    """Bytes of a tensor in a byte a number."""
    return scale_bytes(numbers.count) + packed_bytes(numbers.count, 8)


def four_bits(numbers: Numbers) -> int:
    """Bytes of a tensor in half a byte a number."""
    return scale_bytes(numbers.count) + packed_bytes(numbers.count, 4)


INT8 = Codec(
    "int8",
    "int8 in blocks",
    f"Each number in 255 steps of the largest of its block of {BLOCK}: about a quarter of the "
    "bytes of float32.",
    eight_bits,
    eight_bits,
)
FP8 = Codec(
    "fp8",
    "float8 in blocks",
    "Each number with one digit, however small beside the largest of its block: about a quarter of "
    "the bytes of float32. Activations are off by 3 %, gradients by 5 %.",
    eight_bits,
    eight_bits,
    is_close=False,
)
INT4 = Codec(
    "int4",
    "int4, int8 back",
    f"Activations in 15 steps of the largest of their block of {BLOCK}, about an eighth of the "
    "bytes of float32 and off by 13 %; gradients as int8.",
    four_bits,
    eight_bits,
    is_close=False,
)
