"""Files that nearly are what a parser expects: parts cut, repeated, swapped, and odd words."""

from collections.abc import Sequence

from hypothesis import strategies as st

WORDS = (
    *("", "\0", "\n", "\t", "\r\n", " ", "\\", '"', "'", ",", ":", "-", "=", "{", "}", "[", "]"),
    *("null", "true", "NaN", "Infinity", "-1", "0", "1e999", "1" * 400, "1" * 5000, "-0.0", "0x1"),
    *("../../etc/passwd", "\N{RIGHT-TO-LEFT OVERRIDE}", "\ud800", "\N{SNOWMAN}", "\\ud800", "٣"),
    *("&a [*a]", "!!python/object/apply:os.system [id]", "<script>", "'; DROP TABLE runs; --"),
    *("[" * 3000, '{"a":' * 3000, "(" * 500, "9" * 18, "2147483648", "1e308"),
)


def mutated(seeds: Sequence[str]) -> st.SearchStrategy[str]:
    """One of the seeds with a few changes, or anything."""
    return st.builds(_changed, st.sampled_from(seeds), st.lists(_change(), max_size=4)) | st.text()


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


def _changed_bytes(seed: bytes, changes: Sequence[tuple[float, int, bytes]]) -> bytes:
    for where, length, word in changes:
        start = int(where * len(seed))
        seed = seed[:start] + word + seed[start + length :]
    return seed
