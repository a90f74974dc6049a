"""Pages are drawn a few at a time.

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

_slots = threading.Semaphore(AT_ONCE)
_mine = threading.local()


@contextmanager
def page_slot() -> Iterator[None]:
    """Wait for a slot, unless this thread holds one already."""
    if getattr(_mine, "taken", False):
        yield
        return
    has_slot = _slots.acquire(timeout=PATIENCE)
    _mine.taken = True
    try:
        yield
    finally:
        _mine.taken = False
        if has_slot:
            _slots.release()
