"""Of each sample the largest numbers alone, and of their gradients those at the same places.

Source: Gupta et al., "Training Recommender Systems at Scale: Communication-Efficient Model and Data
Parallelism", KDD 2021, arXiv 2010.08899 (DCT in model parallelism). A sample is a row of the first
dimension. Ours: exactly as many as are named, of equal ones the first, so that bytes are known.
"""

from functools import partial

from backend.pipeline.codecs.codec import Codec, Numbers

SHORT = 1 << 16
"""Places in a row that two bytes tell apart; of longer rows each takes four."""


def kept_per_row(numbers: Numbers, percent: int) -> int:
    """How many of a row are sent: one at least."""
    return max(1, numbers.per_row * percent // 100)


def place_bytes(numbers: Numbers) -> int:
    """Of a place in a row."""
    return 2 if numbers.per_row <= SHORT else 4


def map_bytes(numbers: Numbers) -> int:
    """Of a bit for each number of the tensor: kept or not."""
    return -(-numbers.count // 8)


def has_map(numbers: Numbers, percent: int) -> bool:
    """Whether such a map says in fewer bytes which are kept than their places do."""
    kept = numbers.rows * kept_per_row(numbers, percent)
    return map_bytes(numbers) < kept * place_bytes(numbers)


def _forth(percent: int, numbers: Numbers) -> int:
    if not numbers.count or not numbers.rows:
        return numbers.bytes
    kept = numbers.rows * kept_per_row(numbers, percent)
    return kept * numbers.width + min(map_bytes(numbers), kept * place_bytes(numbers))


def _back(percent: int, numbers: Numbers) -> int:
    """Values alone: both ends know the places, unless the activation went plain."""
    if _forth(percent, numbers) >= numbers.bytes:
        return numbers.bytes
    return numbers.rows * kept_per_row(numbers, percent) * numbers.width


def _top(percent: int) -> Codec:
    return Codec(
        f"top{percent}",
        f"largest {percent} % of each sample",
        f"Of each sample the largest {percent} % of the numbers, exactly, and of the gradients "
        "those at the same places. The others count as 0, in evaluation too.",
        partial(_forth, percent),
        partial(_back, percent),
        is_close=False,
        is_layer=True,
    )


PERCENTS = (10, 5, 3)
TOP = {percent: _top(percent) for percent in PERCENTS}
