"""Pages are drawn a few at a time, and what is computed in the background gives way to them.

An interpreter computes for one of them at a time anyway. Where dozens are in the middle of it, each
holds connections and locks of libraries that the others wait for, and all take many times as long.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = 3
"""One computes, one waits for the database, one is done."""
PATIENCE = 1.0
"""Seconds after which a page is drawn even so: others may wait for a planner or an upload."""

GIVE_WAY = 0.05
"""Seconds that the background waits at most for pages before its next candidate."""

_slots = threading.Semaphore(AT_ONCE)
_mine = threading.local()
_drawing, _changed = 0, threading.Condition()


@contextmanager
def page_slot() -> Iterator[None]:
    """Wait for a slot, unless this thread holds one already."""
    if getattr(_mine, "taken", False):
        yield
        return
    has_slot = _slots.acquire(timeout=PATIENCE)
    _mine.taken = True
    _count(1)
    try:
        yield
    finally:
        _count(-1)
        _mine.taken = False
        if has_slot:
            _slots.release()


@contextmanager
def idle() -> Iterator[None]:
    """Inside, the page that this thread draws only waits: nobody gives way to it."""
    drawn = 1 if getattr(_mine, "taken", False) else 0
    _count(-drawn)
    try:
        yield
    finally:
        _count(drawn)


def give_way() -> None:
    """Let the pages that are being drawn go first, for a moment."""
    with _changed:
        _changed.wait_for(lambda: not _drawing, GIVE_WAY)


def _count(change: int) -> None:
    global _drawing
    with _changed:
        _drawing += change
        _changed.notify_all()
