"""Ranks end when the lease was not renewed for too long, and not before."""

import threading
import time

from backend.settings import Settings
from backend.storage.errors import DatabaseUnreachable
from workers.supervisor.lease import Lease


class Holder:
    """An attempt whose every renewal fails, as often as it is tried."""

    def __init__(self) -> None:
        self.calls = 0
        self.often = threading.Event()

    def beat(self) -> bool:
        self.calls += 1
        if self.calls == 3:
            self.often.set()
        raise DatabaseUnreachable("for a moment")


class Keeping(Holder):
    """One that somebody asked to cancel, and whose lease is kept."""

    def beat(self) -> bool:
        return True


def lease_of(holder: Holder, seconds: float, heartbeat: float = 0.01) -> Lease:
    settings = Settings(lease=seconds, heartbeat=heartbeat)
    return Lease(holder, settings)  # type: ignore[arg-type]  # enough of it


def test_it_lets_go_once_while_the_agent_hangs():
    gone, lease = [], lease_of(Holder(), 0.5)
    once = threading.Event()
    with lease.watched(lambda: (gone.append(1), once.set())):
        assert once.wait(30)
        assert lease.has_lapsed
        time.sleep(0.3)
    assert gone == [1]


def test_renewals_and_an_early_end_keep_it_quiet():
    gone, lease = threading.Event(), lease_of(Keeping(), 60.0)
    with lease.watched(gone.set):
        assert lease.renew()
    assert not gone.is_set()
    assert not lease.has_lapsed


def test_it_is_due_after_a_heartbeat():
    lease = lease_of(Keeping(), 60.0, heartbeat=30.0)
    assert not lease.is_due
    lease = lease_of(Keeping(), 60.0, heartbeat=1e-9)
    time.sleep(0.001)
    assert lease.is_due


def test_it_is_renewed_again_and_again_beside_long_work():
    before, holder = threading.active_count(), Holder()
    with lease_of(holder, 60.0).renewing():
        assert holder.often.wait(30)
    assert threading.active_count() == before
