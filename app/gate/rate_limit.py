"""How many requests a caller may make: so many a minute, in bursts of as many."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from threading import Lock

from app.api.problems import Refused

MAX_KNOWN = 10_000
MINUTE = 60.0
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Allowance:
    """`left` requests at the time `at`."""

    left: float
    at: float


class RateLimit:
    """Counts callers apart, in memory: every dashboard process counts for itself."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, Allowance] = {}
        self._lock = Lock()

    def take(self, caller: str, most: int) -> None:
        """Count a request of whoever may make `most` a minute, 0 = any number. Raises `Refused`
        (429) with the seconds until the next one."""
        if not most:
            return
        with self._lock:
            now = self._clock()
            left = self._left(caller, now, most)
            self._known[caller] = Allowance(left - 1 if left >= 1 else left, now)
            self._forget(now)
        if left < 1:
            seconds = ceil((1 - left) * MINUTE / most)
            raise Refused(
                429,
                f"more than {most} requests in a minute",
                f"Wait {seconds} s; the operator's STAGEFLOW_RATE says how many are allowed.",
                {"Retry-After": str(seconds)},
            )

    def _left(self, caller: str, now: float, most: int) -> float:
        known = self._known.get(caller)
        if known is None:
            return float(most)
        return min(most, known.left + (now - known.at) * most / MINUTE)

    def _forget(self, now: float) -> None:
        """Whoever has rested is as good as new; in a flood of callers the oldest go."""
        if len(self._known) <= MAX_KNOWN:
            return
        rested = [name for name, known in self._known.items() if now - known.at >= MINUTE]
        for name in rested or list(self._known)[: MAX_KNOWN // 2]:
            del self._known[name]
