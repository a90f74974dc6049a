"""Files that nearly are what a parser expects: parts cut, repeated, swapped, odd words, and other
numbers in the place of a number."""

import re
from collections.abc import Sequence

from hypothesis import strategies as st

WORDS = (
    *("", "\0", "\n", "\t", "\r\n", " ", "\\", '"', "'", ",", ":", "-", "=", "{", "}", "[", "]"),
    *("null", "true", "NaN", "Infinity", "-1", "0", "1e999", "1" * 400, "1" * 5000, "-0.0", "0x1"),
    *("../../etc/passwd", "\N{RIGHT-TO-LEFT OVERRIDE}", "\ud800", "\N{SNOWMAN}", "\\ud800", "٣"),
    *("&a [*a]", "!!python/object/apply:os.system [id]", "<script>", "'; DROP TABLE runs; --"),
    *("[" * 3000, '{"a":' * 3000, "(" * 500, "9" * 18, "2147483648", "1e308"),
)
NUMBERS = (
    *("0", "-1", "1", "0.5", "-0.0", "1e-320", "1e308", "1e999", "-1e999", "NaN", "nan", "1.2.3"),
    *(
        "2147483648",
        "9223372036854775808",
        "9" * 30,
        "1" * 400,
        "1" * 5000,
        "1e18",
        "1e17",
        "1e",
        "²",
        "٣",
    ),
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def mutated(seeds: Sequence[str]) -> st.SearchStrategy[str]:
    """One of the seeds with a few changes or other numbers, or anything."""
    seed = st.sampled_from(seeds)
    numbers = st.lists(st.tuples(st.floats(0, 1), st.sampled_from(NUMBERS)), min_size=1, max_size=3)
    changed = st.builds(_changed, seed, st.lists(_change(), max_size=4))
    return changed | st.builds(_renumbered, seed, numbers) | st.text()


def mutated_bytes(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """The same for files that are no text."""
    changes = st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 60), st.binary(max_size=12)), max_size=4
    )
    return st.builds(_changed_bytes, st.sampled_from(seeds), changes) | st.binary(max_size=300)


def _change() -> st.SearchStrategy[tuple[float, int, str]]:
    word = st.sampled_from(WORDS) | st.text(max_size=8)
    return st.tuples(st.floats(0, 1), st.integers(0, 40), word)


def _changed(seed: str, changes: Sequence[tuple[float, int, str]]) -> str:
    for where, length, word in changes:
        start = int(where * len(seed))
        seed = seed[:start] + word + seed[start + length :]
    return seed


def _renumbered(seed: str, changes: Sequence[tuple[float, str]]) -> str:
    """With other numbers in the place of some."""
    for where, number in changes:
        found = list(_NUMBER.finditer(seed))
        if found:
            start, stop = found[min(int(where * len(found)), len(found) - 1)].span()
            seed = seed[:start] + number + seed[stop:]
    return seed


def _changed_bytes(seed: bytes, changes: Sequence[tuple[float, int, bytes]]) -> bytes:
    for where, length, word in changes:
        start = int(where * len(seed))
        seed = seed[:start] + word + seed[start + length :]
    return seed
