"""Moments in a rank's work: read off the clock on a CPU, events in the stream of a GPU."""

from typing import Protocol

import torch

from workers.runtime.reports.clock import now

Timestamp = float | torch.Event


class Timestamps(Protocol):
    def mark(self) -> Timestamp:
        """The moment at which the work that was given so far is done; nobody waits for it."""
        ...

    def seconds(self, mark: Timestamp) -> float:
        """Of the mark, since the origin. The work must be done (`finish`)."""
        ...

    def finish(self) -> None:
        """Wait until the work that was given is done."""
        ...


class ClockTimestamps:
    """A CPU is done when the call comes back."""

    def __init__(self, origin: float) -> None:
        self._origin = origin

    def mark(self) -> Timestamp:
        return now() - self._origin

    def seconds(self, mark: Timestamp) -> float:
        assert isinstance(mark, float), "an event on a CPU"
        return mark

    def finish(self) -> None:
        """Nothing is open."""


class EventTimestamps:
    """A GPU is not waited for between actions, so that one is given to it while another runs:
    the events of the stream are read when all is done. They count from one whose time is known."""

    def __init__(self, device: torch.device, origin: float) -> None:
        self._device = device
        self._first = self._event()
        self._first.synchronize()
        self._begun = now() - origin

    def mark(self) -> Timestamp:
        return self._event()

    def seconds(self, mark: Timestamp) -> float:
        assert isinstance(mark, torch.Event), "a moment on a GPU"
        return self._begun + self._first.elapsed_time(mark) / 1e3

    def finish(self) -> None:
        self._event().synchronize()

    def _event(self) -> torch.Event:
        event = torch.Event(self._device, enable_timing=True)
        event.record()
        return event


def timestamps(device: torch.device, origin: float) -> Timestamps:
    """Those of the device, in seconds since `origin` on the clock of this machine."""
    return EventTimestamps(device, origin) if device.type == "cuda" else ClockTimestamps(origin)
