"""So many requests a minute, in bursts of as many, each caller for itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.problems import Refused
from app.gate.rate_limit import MAX_KNOWN, RateLimit


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def refused(limit: RateLimit, caller: str, most: int) -> Refused | None:
    try:
        limit.take(caller, most)
    except Refused as error:
        return error
    return None


def test_a_burst_then_as_many_as_time_brings() -> None:
    clock = Clock()
    limit = RateLimit(clock)
    assert not any(refused(limit, "ada", 30) for _ in range(30))
    told = refused(limit, "ada", 30)
    assert told is not None
    assert (told.status, told.headers["Retry-After"]) == (429, "2")
    assert "Wait 2 s" in told.advice
    assert refused(limit, "bob", 30) is None
    clock.now += 2.0
    assert refused(limit, "ada", 30) is None
    assert refused(limit, "ada", 30) is not None


def test_nobody_is_counted_where_nothing_limits() -> None:
    limit = RateLimit(Clock())
    assert not any(refused(limit, "ada", 0) for _ in range(5000))


def test_a_flood_of_callers_does_not_fill_the_memory() -> None:
    limit = RateLimit(Clock())
    for number in range(2 * MAX_KNOWN):
        limit.take(f"caller {number}", 5)
    assert len(limit._known) <= MAX_KNOWN + 1


@given(st.lists(st.floats(0, 20), min_size=1, max_size=200), st.integers(1, 50))
def test_never_more_than_the_burst_and_what_time_brings(steps: list[float], most: int) -> None:
    clock = Clock()
    limit = RateLimit(clock)
    admitted = 0
    for step in steps:
        clock.now += step
        admitted += refused(limit, "ada", most) is None
        assert admitted <= most + clock.now * most / 60 + 1e-6


@pytest.mark.parametrize("wait", [0.1, 5.0, 59.0])
def test_whoever_waits_as_told_is_let_in(wait: float) -> None:
    clock = Clock()
    limit = RateLimit(clock)
    for _ in range(7):
        limit.take("ada", 7)
    clock.now += wait
    while (told := refused(limit, "ada", 7)) is None:
        pass
    clock.now += float(told.headers["Retry-After"])
    assert refused(limit, "ada", 7) is None
