"""Ranks end when the lease was not renewed for too long, and not before."""

import threading
import time

from backend.storage.errors import DatabaseUnreachable
from workers.supervisor.lease_watch import LeaseWatch, renewing


def test_it_lets_go_once_while_the_agent_hangs():
    gone = threading.Event()
    with LeaseWatch(0.5, gone.set) as watch:
        assert gone.wait(30)
        assert watch.is_over


def test_renewals_and_an_early_end_keep_it_quiet():
    gone = threading.Event()
    with LeaseWatch(60.0, gone.set) as watch:
        watch.renewed(time.monotonic())
    assert not gone.is_set()
    assert not watch.is_over


def test_a_lease_is_renewed_again_and_again_beside_long_work():
    before, calls = threading.active_count(), []
    often = threading.Event()

    def renew() -> None:
        calls.append(1)
        if len(calls) == 3:
            often.set()
        raise DatabaseUnreachable("for a moment")

    with renewing(renew, 0.01):
        assert often.wait(30)
    assert threading.active_count() == before
