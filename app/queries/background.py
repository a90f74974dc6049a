"""Values that are computed in the background, so that the page stays alive meanwhile."""

import time
from collections.abc import Callable, Iterator
from math import inf
from threading import Event, Thread
from typing import Generic, TypeVar
from weakref import WeakSet

import structlog

from app.server.searchers import SearcherEnded
from backend.errors import StageflowError
from backend.prediction.watch import Watch

T = TypeVar("T")

log = structlog.get_logger("app")


class Visitor:
    """One browser session, as searches know it: a session that is over waits for nothing."""


class Background(Generic[T]):
    """What `make(watch)` yields, in the order in which it comes.

    items     the values so far
    asked_at  when it was asked for, by the process's clock
    said_at   when the first of them came, or it ended without; infinite before
    total     how many are expected at most; 0 where nobody knows
    progress  the planner that works, and how many of how many candidates are done
    fault     why it ended early, in words for people
    waiting   the visitors who want it: one who leaves ends it only where nobody else is there
    """

    def __init__(self, make: Callable[[Watch], Iterator[T]], total: int = 0) -> None:
        self.total = total
        self.items: list[T] = []
        self.asked_at, self.said_at = time.monotonic(), inf
        self.progress = ("", 0, 0)
        self.fault: StageflowError | None = None
        self.waiting: WeakSet[Visitor] = WeakSet()
        self._make = make
        self._stop, self._said, self._ended = Event(), Event(), Event()
        self._thread = Thread(target=self._run, name="planning", daemon=True)
        self._thread.start()

    @property
    def done(self) -> int:
        return len(self.items)

    @property
    def is_running(self) -> bool:
        return not self._ended.is_set()

    @property
    def was_cancelled(self) -> bool:
        """Whether it was ended before it was through."""
        return self._stop.is_set() and not 0 < self.total <= self.done

    @property
    def was_lost(self) -> bool:
        """Whether its process ended before it was through."""
        return isinstance(self.fault, SearcherEnded)

    def cancel(self) -> None:
        """End it soon; what is there stays."""
        if self.is_running:
            self._stop.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it has ended within that time."""
        return self._ended.wait(seconds)

    def wait_for_first(self, seconds: float | None = None) -> bool:
        """Whether a value has come, or it has ended, within that time."""
        return self._said.wait(seconds)

    def _run(self) -> None:
        try:
            for item in self._make(Watch(self._follow, self._stop.is_set)):
                self.items.append(item)
                self._has_said()
                if self._stop.is_set():
                    return
        except StageflowError as fault:
            self.fault = fault
        except Exception:
            log.exception("planning failed")
            advice = "Plan something else meanwhile, and report what the log says."
            self.fault = StageflowError("planning failed; the server's log says why", advice)
        finally:
            self._ended.set()
            self._has_said()

    def _has_said(self) -> None:
        if not self._said.is_set():
            self.said_at = time.monotonic()
            self._said.set()

    def _follow(self, planner: str, done: int, total: int) -> None:
        self.progress = (planner, done, total)
