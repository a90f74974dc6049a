"""Moments of a rank's work; those of a GPU on a device that is made up, for want of one."""

import pytest
import torch

from workers.runtime.reports import timestamps as module
from workers.runtime.reports.timestamps import ClockTimestamps, EventTimestamps, timestamps


class Stream:
    """Does what it is given a second later than the host gives it; counts who waits for it."""

    host, waits = 100.0, 0


class FakeEvent:
    """torch.Event's part that is asked for."""

    def __init__(self, device: torch.device, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = Stream.host + 1.0

    def synchronize(self) -> None:
        Stream.waits += 1
        Stream.host = max(Stream.host, self.at)

    def elapsed_time(self, other: "FakeEvent") -> float:
        return (other.at - self.at) * 1e3


def test_a_cpu_s_moments_are_seconds_since_the_origin(monkeypatch):
    monkeypatch.setattr(module, "now", lambda: 12.5)
    found = timestamps(torch.device("cpu"), 10.0)
    assert isinstance(found, ClockTimestamps)
    assert found.seconds(found.mark()) == 2.5


def test_a_gpu_s_moments_are_when_it_gets_there_and_nobody_waits_between(monkeypatch):
    monkeypatch.setattr(module, "now", lambda: Stream.host)
    monkeypatch.setattr(module.torch, "Event", FakeEvent)
    found = EventTimestamps(torch.device("cuda"), 90.0)
    waits, taken = Stream.waits, []
    for _ in range(3):
        taken.append(found.mark())
        Stream.host += 0.25
    assert Stream.waits == waits
    found.finish()
    assert Stream.waits == waits + 1
    assert [found.seconds(mark) for mark in taken] == pytest.approx([12.0, 12.25, 12.5])
