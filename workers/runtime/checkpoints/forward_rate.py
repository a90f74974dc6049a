"""How many microbatches a rank forwards within some seconds, by what it did lately."""

import math
from collections import deque

SPACING, NUM_NOTES = 0.1, 20
"""Seconds between notes, and notes that are kept: what happened within about two seconds."""
LEAST = 0.5
"""Seconds that have to be seen before a pace is told."""


class ForwardRate:
    """Of one epoch: what lies between two is not forwarded at any pace."""

    def __init__(self) -> None:
        self._notes: deque[tuple[float, int]] = deque(maxlen=NUM_NOTES)

    def note(self, microbatch: int, now: float) -> None:
        """`microbatch` is forwarded at `now`, in monotonic seconds."""
        if not self._notes or now - self._notes[-1][0] >= SPACING:
            self._notes.append((now, microbatch))

    def within(self, seconds: float) -> int | None:
        """Microbatches in that time, rounded up; None where too little was seen."""
        if not self._notes:
            return None
        (start, first), (end, last) = self._notes[0], self._notes[-1]
        if end - start < LEAST:
            return None
        return math.ceil((last - first) / (end - start) * seconds)
