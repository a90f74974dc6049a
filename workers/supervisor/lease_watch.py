"""Keeps a lease while something takes long; ends the ranks where it cannot be kept."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

from backend.errors import StageflowError

GIVE_UP = 0.7
"""Share of a lease after which an agent that cannot renew it ends its ranks: before anybody may
count the run as lost."""
TICK = 0.1


class LeaseWatch:
    """A thread from the block's beginning to its end that calls `let_go` once, when the lease
    (seconds) was not `renewed` for too long: also while the agent hangs in a write."""

    def __init__(self, lease: float, let_go: Callable[[], object]) -> None:
        self._limit = GIVE_UP * lease
        self._let_go = let_go
        self._renewed = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.is_over = False

    def renewed(self, moment: float) -> None:
        """The lease was renewed by a write that was begun at `moment` (monotonic seconds)."""
        self._renewed = moment

    def __enter__(self) -> "LeaseWatch":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        """Time in which the whole process stood still does not count: afterwards its other
        threads shall have a chance to renew, or to hear that the lease is lost."""
        spent, known, last = 0.0, self._renewed, time.monotonic()
        while not self._ended.wait(TICK):
            now = time.monotonic()
            spent = spent + min(now - last, 2 * TICK) if self._renewed == known else 0.0
            known, last = self._renewed, now
            if spent > self._limit:
                self.is_over = True
                self._let_go()
                return


@contextmanager
def renewing(renew: Callable[[], object], seconds: float) -> Iterator[None]:
    """Renew every so many seconds, in a thread of its own, while a file is copied or a backlog
    is written. What it meets is met again by the block, or by the next write."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(seconds):
            with suppress(StageflowError):
                renew()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
