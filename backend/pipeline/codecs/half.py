"""Two bytes a number: what every framework's mixed precision sends."""

from backend.pipeline.codecs.codec import Codec, Numbers


def _bytes(numbers: Numbers) -> int:
    return 2 * numbers.count


BF16 = Codec(
    "bf16",
    "bfloat16",
    "Each number with the range of float32 and three digits: half the bytes of float32.",
    _bytes,
    _bytes,
)
FP16 = Codec(
    "fp16",
    "float16",
    "Each number with four digits, infinite above 65,504: half the bytes of float32.",
    _bytes,
    _bytes,
    is_close=False,
)
