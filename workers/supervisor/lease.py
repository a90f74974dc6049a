"""The lease of an attempt: renewed while it works, watched by a thread that ends its ranks."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from backend.errors import StageflowError
from backend.services.runs.attempt import Attempt
from backend.settings import Settings
from backend.storage.errors import DatabaseUnreachable

GIVE_UP = 0.7
"""Share of a lease after which an agent that cannot renew it ends its ranks: before anybody may
count the run as lost."""
TICK = 0.1
T = TypeVar("T")


class Lease:
    """Renewed by the supervisor and, beside long work, by a thread."""

    def __init__(self, attempt: Attempt, settings: Settings) -> None:
        self._attempt, self._settings = attempt, settings
        self._renewed = time.monotonic()
        self.has_lapsed = False
        """`watched` has let go."""

    @property
    def is_due(self) -> bool:
        """Is it time to renew it?"""
        return time.monotonic() - self._renewed >= self._settings.heartbeat

    def renew(self) -> bool:
        """Was a cancel asked for?"""
        begun = time.monotonic()
        cancel_requested = self._attempt.beat()
        self._renewed = begun
        return cancel_requested

    def persistently(self, work: Callable[[], T]) -> T:
        """What comes before there are ranks, again and again while the database is away, as long as
        nobody may count the run as lost. Raises `DatabaseUnreachable` after that."""
        while True:
            try:
                return work()
            except DatabaseUnreachable:
                if time.monotonic() - self._renewed > GIVE_UP * self._settings.lease:
                    raise
                time.sleep(TICK)

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew it again and again, in a thread, while a file is copied or a backlog is written.
        What it meets is met again by the block, or by the next write."""

        def renew() -> None:
            with suppress(StageflowError):
                self.renew()

        with _repeating(renew, self._settings.heartbeat):
            yield

    @contextmanager
    def watched(self, let_go: Callable[[], object]) -> Iterator[None]:
        """Call `let_go` once, from a thread, when it was not renewed for too long: also while
        the agent hangs in a write. Time in which the whole process stood still does not count:
        afterwards its other threads shall have a chance to renew, or to hear that it is lost."""
        limit = GIVE_UP * self._settings.lease
        spent, known, last = 0.0, self._renewed, time.monotonic()

        def watch() -> None:
            nonlocal spent, known, last
            now = time.monotonic()
            spent = spent + min(now - last, 2 * TICK) if self._renewed == known else 0.0
            known, last = self._renewed, now
            if spent > limit and not self.has_lapsed:
                self.has_lapsed = True
                let_go()

        with _repeating(watch, TICK):
            yield


@contextmanager
def _repeating(work: Callable[[], object], seconds: float) -> Iterator[None]:
    """Do it every so many seconds, in a thread of its own, until the block's end."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.wait(seconds):
            work()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
