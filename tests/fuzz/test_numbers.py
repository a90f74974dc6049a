"""Every number in a text that is read may be far too large: an error of ours, and no memory for
as many as it says."""

import re
from contextlib import suppress

import pytest

from backend.errors import StageflowError
from tests.fuzz.test_parsers import TEXTS

LARGE = ("99", "2147483648", "4294967297", "9223372036854775807", "1" + "0" * 20)
MOST_PLACES = 150


def places_of_numbers(text: str) -> list[tuple[int, int]]:
    """Where the numbers of a text stand, spread over it where there are many."""
    spans = [found.span() for found in re.finditer(r"\d+", text)]
    return spans[:: max(1, len(spans) // MOST_PLACES)]


@pytest.mark.parametrize(
    "name",
    ["program as text", "program as JSON", "program as CSV", "trace", "cluster", "graph.txt"],
)
def test_no_large_number_brings_out_another_error(name: str) -> None:
    parser = TEXTS[name]
    for seed in parser.seeds:
        places = places_of_numbers(seed)
        assert places
        for start, end in places:
            for large in LARGE:
                with suppress(StageflowError):
                    parser.reads(seed[:start] + large + seed[end:])
