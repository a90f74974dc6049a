"""How long work takes on a device: the thread's own time on a CPU, events in a GPU's stream."""

from collections.abc import Callable
from time import thread_time
from typing import Protocol, TypeVar

import torch

T = TypeVar("T")


class LayerTimer(Protocol):
    def timed(self, seconds: list[float], work: Callable[[], T]) -> T:
        """Do the work; its seconds are in the list by `finish` at the latest."""
        ...

    def finish(self) -> None: ...


def layer_timer(device: torch.device) -> LayerTimer:
    """The one for the device."""
    return EventTimer(device) if device.type == "cuda" else ThreadTimer()


class ThreadTimer:
    """Time in which others have the core does not count: the profiler computes in one thread,
    and long work is interrupted more often than short."""

    def timed(self, seconds: list[float], work: Callable[[], T]) -> T:
        start = thread_time()
        result = work()
        seconds.append(thread_time() - start)
        return result

    def finish(self) -> None:
        """Nothing is open."""


class EventTimer:
    """A GPU is not waited for between layers, so that it stays as busy as in training."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._open: list[tuple[list[float], torch.Event, torch.Event]] = []

    def timed(self, seconds: list[float], work: Callable[[], T]) -> T:
        start, stop = (torch.Event(self._device, enable_timing=True) for _ in range(2))
        start.record()
        result = work()
        stop.record()
        self._open.append((seconds, start, stop))
        return result

    def finish(self) -> None:
        torch.cuda.synchronize()
        for seconds, start, stop in self._open:
            seconds.append(start.elapsed_time(stop) / 1e3)
        self._open = []
