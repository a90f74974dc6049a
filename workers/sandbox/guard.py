"""Watches what the kernel does not bound everywhere for a run: time, memory, processes, disk."""

import time
from collections.abc import Callable
from pathlib import Path

from backend.runs.run import RunError
from backend.units import bytes_text
from workers.sandbox import usage
from workers.sandbox.limits import Limits

LOOK = 0.2
"""Seconds between looks at the processes."""
COUNT = 1.0
"""Seconds between counts of the files."""


class Guard:
    """`outermost` is the process from which all of the run descend, `folder` the one in
    which they write. `is_out_of_memory`: has the kernel ended one for that? Times are monotonic
    seconds."""

    def __init__(
        self,
        limits: Limits,
        outermost: int,
        folder: Path,
        is_out_of_memory: Callable[[], bool] = lambda: False,
    ) -> None:
        self._limits = limits
        self._outermost = outermost
        self._folder = folder
        self._is_out_of_memory = is_out_of_memory
        self._look_at = self._count_at = time.monotonic()
        self._started = self._look_at - limits.spent

    def error(self, now: float) -> RunError | None:
        """Why the run must be ended; None while it keeps its limits."""
        if now - self._started > self._limits.seconds:
            seconds = now - self._started
            return self._limits.breach("OutOfTime", f"the run was ended after {seconds:,.0f} s")
        if self._is_out_of_memory():
            text = "the ranks hold more with what they share and keep in memory"
            return self._limits.breach("OutOfMemory", text)
        if now > self._look_at and (error := self._look()):
            return error
        return self._count() if now > self._count_at else None

    def _look(self) -> RunError | None:
        begun = time.monotonic()
        found = usage.of_processes(self._outermost)
        self._look_at = _next(begun, LOOK)
        if found.tasks >= self._limits.processes:
            return self._limits.breach("TooManyProcesses", f"the run has {found.tasks:,}")
        if found.memory > self._limits.memory:
            return self._limits.breach("OutOfMemory", f"the ranks hold {bytes_text(found.memory)}")
        return None

    def _count(self) -> RunError | None:
        begun = time.monotonic()
        found = usage.of_folder(self._folder, self._limits.files)
        self._count_at = _next(begun, COUNT)
        if found.is_too_deep:
            text = f"the run has more than {usage.DEEPEST} folders in each other, too deep to count"
            return self._limits.breach("TooManyFiles", text)
        if found.is_closed:
            text = "the run has closed a folder to the agent, whose files cannot be counted"
            return self._limits.breach("TooManyFiles", text)
        if found.count > self._limits.files:
            text = f"the run has more than {found.count:,} files"
            return self._limits.breach("TooManyFiles", text)
        if found.size > self._limits.disk:
            return self._limits.breach("DiskFull", f"the run has written {bytes_text(found.size)}")
        return None


def _next(begun: float, pause: float) -> float:
    """When to do again what began then: it never takes more than a tenth of the time."""
    now = time.monotonic()
    return now + max(pause, 9 * (now - begun))
