"""When a run that lost nodes goes on by a smaller plan, and when it takes the larger one again."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.runs.attempts.going_on import Stake, expected_wait, goes_on, returns

seconds = st.floats(0, 1e6)
rates = st.floats(1e-3, 1e6)
stakes = st.builds(Stake, st.floats(0, 1e9), rates, st.floats(0, 4), seconds)


@pytest.mark.parametrize(
    ("remaining", "factor", "restart", "wait", "go"),
    [
        (36_000, 0.5, 30, inf, True),  # nobody knows when they come back
        (36_000, 0.0, 30, inf, False),  # nothing fits what is left
        (36_000, 0.5, 30, 600, False),  # 30 s and 2 h against 10 min and 1 h
        (36_000, 0.5, 30, 4_000, True),
        (36_000, 0.9, 30, 300, False),
        (36_000, 0.9, 30, 500, True),  # 400 s more compute
        (36_000, 1.2, 30, 0, True),  # another schedule is faster on fewer
        (100, 0.5, 30, 20, False),  # 10 s of work are left: not worth a restart
        (0, 0.5, 30, 31, True),
    ],
)
def test_the_table(remaining, factor, restart, wait, go):
    assert goes_on(Stake(remaining, 10, factor, restart), wait) == go


@pytest.mark.parametrize(
    ("waited", "outages", "expected"),
    [
        (60, (), inf),
        (60, (30, 50), inf),  # longer away than ever before
        (0, (100, 300), 200),
        (60, (30, 160, 260), 150),
    ],
)
def test_what_is_left_of_an_outage(waited, outages, expected):
    assert expected_wait(waited, outages) == expected


@given(stakes, seconds, seconds)
def test_who_goes_on_goes_on_as_well_before_a_longer_wait(stake, wait, longer):
    assert goes_on(stake, wait) <= goes_on(stake, wait + longer) <= goes_on(stake, inf)


@given(stakes)
def test_nobody_goes_to_and_fro(stake):
    """Where going back pays, going on does not, were the nodes there at once."""
    assert not (returns(stake) and goes_on(stake, 0.0))


@given(stakes, seconds)
def test_a_longer_restart_changes_no_plan(stake, more):
    slower = Stake(stake.remaining, stake.rate, stake.factor, stake.restart + more)
    assert returns(slower) <= returns(stake)
    assert goes_on(slower, 100.0) <= goes_on(stake, 100.0)
