"""What an agent carries: when it has begun, and when that is over."""

import threading

import pytest

from workers.carried_runs import CarriedRuns


def test_a_run_that_is_being_begun_is_not_over(monkeypatch: pytest.MonkeyPatch):
    """Who looks just then, as an agent of one run does, would end it."""
    carried, done, seen = CarriedRuns(lambda: None), threading.Event(), []
    start = threading.Thread.start

    def looked(thread: threading.Thread) -> None:
        seen.append(carried.has_carried and carried.is_idle)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", looked)
    carried.carry([0], lambda: done.wait(240))
    assert seen
    assert not any(seen)
    assert carried.has_carried
    assert not carried.is_idle
    done.set()
    carried.join(240)
    assert carried.is_idle
