"""Columns and lengths of data as a person writes them."""

from collections.abc import Sequence

from backend.errors import InvalidInput
from backend.whole import is_whole


def words(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def read_buckets(text: str) -> tuple[int, ...]:
    """Of "16, 32, 64". Raises `InvalidInput`."""
    for word in words(text):
        if not is_whole(word):
            raise InvalidInput(f"a bucket of {word!r} is not a length", "Try 16, 32, 64.")
    buckets = tuple(map(int, words(text)))
    check_lengths(0, buckets)
    return buckets


def check_lengths(length: int, buckets: Sequence[int]) -> None:
    """Raises `InvalidInput`."""
    if length < 0 or list(buckets) != sorted({bucket for bucket in buckets if bucket > 0}):
        raise InvalidInput(
            f"length {length}, buckets {', '.join(map(str, buckets))}",
            "Lengths are above 0, and buckets ascend, such as 16, 32, 64.",
        )
