"""A pace is what was done lately, and nothing where too little was seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.runtime.checkpoints.forward_rate import LEAST, NUM_NOTES, SPACING, ForwardRate


def forwarded(
    pace: ForwardRate, seconds: float, number: int, since: float = 0.0, first: int = 0
) -> None:
    """So many microbatches at an even pace."""
    for k in range(number):
        pace.note(first + k, since + k * seconds / number)


@given(st.floats(0.001, 2), st.floats(0.1, 10))
def test_an_even_pace_goes_on(each: float, seconds: float):
    pace = ForwardRate()
    number = int(4 * (LEAST + SPACING) / each) + 4
    forwarded(pace, number * each, number)
    assert pace.within(seconds) == pytest.approx(seconds / each, abs=1, rel=1e-6)


def test_nothing_is_told_too_early():
    pace = ForwardRate()
    assert pace.within(1) is None
    forwarded(pace, LEAST, 100)
    assert pace.within(1) is None


def test_how_it_began_is_forgotten():
    pace, slow = ForwardRate(), 20
    forwarded(pace, 10.0, slow)
    quick = int(NUM_NOTES * SPACING * 1.5 * 100)
    forwarded(pace, quick / 100, quick, 10.0, slow)
    assert pace.within(1.0) == pytest.approx(100, abs=2)
