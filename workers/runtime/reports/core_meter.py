"""What a process has of the cores while it computes, and what others take.

A rank computes in one thread. A thread that is ready to run and has no core waits in the
kernel's run queue: Linux counts those seconds (/proc/thread-self/schedstat, second number), and
they are exactly what others took. A thread that waits for a message, for samples or for a page is
not in that queue, so that no such wait counts. They are read at the ends of a segment alone: a
thread loses its core on its way out of the kernel, so also in between two readings. Other systems
do not tell: there whatever the clock has beyond the thread's CPU seconds while it computes counts
as taken, which is too much where a forward waits for its samples.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import psutil

from backend.cores import usable_cores
from backend.pipeline.actions import (
    Action,
    Backward,
    BackwardInput,
    BackwardWeight,
    Forward,
    Recompute,
)
from backend.runs.events import CoreUse

COMPUTES = (Forward, Recompute, Backward, BackwardInput, BackwardWeight)
"""Actions in which a rank waits for nobody. A step may wait for the norms of other stages."""
BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""What a core did if it was not idle, as psutil names it; guests are part of `user`."""
R = TypeVar("R")


class CoreMeter:
    """Counts from when it is made. To be used by one thread."""

    def __init__(self) -> None:
        self._queue = _queue()
        self._load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        self._began, self._process, self._busy = time.monotonic(), time.process_time(), _busy()
        self._cpu, self._queued = time.thread_time(), self._in_queue()
        self._beyond = 0.0

    def __del__(self) -> None:
        if self._queue is not None:
            os.close(self._queue)

    def over(self, perform: Callable[[int, Action], R]) -> Callable[[int, Action], R]:
        """`perform`, watched where the action computes and the system counts nothing."""

        def watched(index: int, action: Action) -> R:
            if not isinstance(action, COMPUTES):
                return perform(index, action)
            return self.computing(lambda: perform(index, action))

        return perform if self._queue is not None else watched

    def computing(self, work: Callable[[], R]) -> R:
        """Do the work, in which nobody is waited for."""
        wall, cpu = time.monotonic(), time.thread_time()
        try:
            return work()
        finally:
            took = time.monotonic() - wall
            self._beyond += max(0.0, took - (time.thread_time() - cpu))

    @property
    def waited(self) -> float:
        """Seconds so far in which the thread was ready to run and others had the cores."""
        return self._beyond if self._queue is None else self._in_queue() - self._queued

    @property
    def taken(self) -> float:
        """The share of the time in which it could compute that others had the cores."""
        waited, cpu = self.waited, time.thread_time() - self._cpu
        return waited / (cpu + waited) if cpu + waited else 0.0

    def told(self, rank: int, segment: int, host: int = 0) -> CoreUse:
        """What was counted so far."""
        return CoreUse(
            rank=rank,
            segment=segment,
            cpu=time.thread_time() - self._cpu,
            waited=self.waited,
            process=time.process_time() - self._process,
            busy=max(0.0, _busy() - self._busy),
            seconds=time.monotonic() - self._began,
            cores=usable_cores(),
            load=self._load,
            host=host,
        )

    def _in_queue(self) -> float:
        if self._queue is None:
            return 0.0
        return int(os.pread(self._queue, 100, 0).split()[1]) / 1e9


def _queue() -> int | None:
    """The open file that tells this thread's seconds in the run queue; None where there is none,
    or the kernel does not count them."""
    with suppress(OSError):
        opened = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        fields = os.pread(opened, 100, 0).split()
        if len(fields) == 3 and int(fields[0]) > 0:
            return opened
        os.close(opened)
    return None


def _busy() -> float:
    """Seconds that the cores of this process have not been idle, since the machine started."""
    cores = psutil.cpu_times(percpu=True)
    if hasattr(os, "sched_getaffinity"):
        mine = os.sched_getaffinity(0)
        cores = [times for number, times in enumerate(cores) if number in mine]
    return sum(sum(getattr(times, kind, 0.0) for kind in BUSY) for times in cores)
