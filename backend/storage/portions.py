"""Many rows are written in portions: on SQLite nobody else can write during a transaction."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Portion = TypeVar("Portion")
ROWS = 10_000
"""Of a portion: some 0.2 s where they are inserted."""
LONGEST_PAUSE = 0.1
"""Seconds after which SQLite's busy handler, which knows no order, asks again at the latest."""


def in_turns(portions: Iterable[Portion]) -> Iterator[Portion]:
    """Each portion; after each, others can write for as long as it took."""
    for portion in portions:
        begun = time.monotonic()
        yield portion
        time.sleep(min(time.monotonic() - begun, LONGEST_PAUSE))
