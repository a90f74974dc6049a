"""Values that are computed in the background, so that the page stays alive meanwhile."""

import time
from collections.abc import Callable, Iterator, Mapping
from math import inf
from threading import Event, Lock, Thread
from typing import Any, Generic, TypeVar
from weakref import WeakSet

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.log import logger
from app.server.searchers import SearcherEnded
from app.session.state import Key
from backend.errors import StageflowError
from backend.prediction.watch import Watch

T = TypeVar("T")

log = logger("app")


LEAVE = 10.0
"""Seconds for which a visitor may be away, as one who loads a page again or whose network fails,
before what only they wait for is ended."""


class Visitor:
    """The browser session that makes it, as searches know it: a session that is over waits for
    nothing."""

    def __init__(self) -> None:
        context = get_script_run_ctx(suppress_warning=True)
        self._session = context.session_id if context else ""

    @property
    def is_here(self) -> bool:
        """Whether a browser shows its page. Where no server runs, nobody can leave."""
        if not self._session:
            return True
        try:  # asked at once: one that exists may be gone before it is asked
            return runtime.get_instance().is_active_session(self._session)
        except RuntimeError:
            return True


class Background(Generic[T]):
    """What `make(watch)` yields, in the order in which it comes.

    items     the values so far
    asked_at  when it was asked for, by the process's clock
    said_at   when the first of them came, or it ended without; infinite before
    total     how many are expected at most; 0 where nobody knows
    progress  the planner that works, and how many of how many candidates are done
    fault     why it ended early, in words for people
    was_left  it was ended since nobody who wanted it was there, or wanted it, any longer
    """

    def __init__(self, make: Callable[[Watch], Iterator[T]], total: int = 0) -> None:
        self.total = total
        self.items: list[T] = []
        self.asked_at, self.said_at = time.monotonic(), inf
        self.progress = ("", 0, 0)
        self.fault: StageflowError | None = None
        self.was_left = False
        self._wanting, self._visitors = Lock(), WeakSet[Visitor]()
        self._seen_at = inf  # until somebody wants it
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

    def want(self, visitor: Visitor) -> bool:
        """It goes on as long as the visitor is there, or another one. False where it was left
        before: it is to be asked anew."""
        with self._wanting:
            self._visitors.add(visitor)
            self._seen_at = time.monotonic()
            return not self.was_left

    def leave(self, visitor: Visitor) -> None:
        """The visitor wants it no longer, which ends it where nobody else does."""
        with self._wanting:
            self._visitors.discard(visitor)
            if self.is_running and not self._visitors:
                self._is_left()

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
            for item in self._make(Watch(self._follow, self._is_over)):
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

    def _is_over(self) -> bool:
        with self._wanting:
            now = time.monotonic()
            if any(visitor.is_here for visitor in self._visitors):
                self._seen_at = now
            elif now - self._seen_at > LEAVE and not self._stop.is_set():
                self._is_left()
        return self._stop.is_set()

    def _is_left(self) -> None:
        self.was_left = True
        self._stop.set()

    def _has_said(self) -> None:
        if not self._said.is_set():
            self.said_at = time.monotonic()
            self._said.set()

    def _follow(self, planner: str, done: int, total: int) -> None:
        self.progress = (planner, done, total)


def this_visitor() -> Visitor:
    """Who looks at the page."""
    me: Visitor = st.session_state.setdefault(Key.VISITOR.value, Visitor())
    return me


def under_way(cached: Any, *given: Any) -> Background[Any]:
    """What the function `cached`, whose values Streamlit keeps, computes of what is `given`, as
    this visitor wants it: anew where it was left the last time."""
    search: Background[Any] = cached(*given)
    if not search.want(this_visitor()):
        cached.clear(*given)
        search = cached(*given)
        search.want(this_visitor())
    return search


def end_others(subject: object, now: Mapping[Background[Any], Callable[[], None]]) -> None:
    """End what this visitor asked about another `subject`, and nobody waits for any longer; each
    search with what forgets it."""
    before: tuple[object, Mapping[Background[Any], Callable[[], None]]]
    before = st.session_state.get(Key.PLANNING.value, (None, {}))
    old, running = before
    if old != subject:
        for search in running:
            if search not in now:
                search.leave(this_visitor())
        running = {}
    st.session_state[Key.PLANNING.value] = (subject, {**running, **now})
