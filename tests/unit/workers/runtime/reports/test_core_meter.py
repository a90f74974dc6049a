"""What a thread has of the cores: by the kernel's count, and where there is none by the clock."""

import os
import time

import pytest

from backend.pipeline.actions import Action, Flow, Forward, Message, Recv
from workers.runtime.reports import core_meter
from workers.runtime.reports.core_meter import CoreMeter


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_sleep_is_no_wait_for_a_core() -> None:
    meter = CoreMeter()
    time.sleep(0.2)
    told = meter.told(3, 5, 1)
    assert (told.rank, told.segment, told.host) == (3, 5, 1)
    assert told.seconds >= 0.2
    assert told.cpu + told.waited < told.seconds
    assert told.cores == len(os.sched_getaffinity(0))


def test_computing_is_counted() -> None:
    meter = CoreMeter()
    spin(0.05)
    told = meter.told(0, 0)
    assert 0.05 <= told.cpu <= told.process
    assert 0 <= meter.taken < 1


def test_without_the_kernels_count_the_clock_counts_while_it_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core_meter, "_queue", lambda: None)
    meter = CoreMeter()
    did: list[int] = []

    def perform(index: int, action: Action) -> None:
        did.append(index)
        time.sleep(0.1)

    watched = meter.over(perform)
    watched(0, Recv(Message(Flow.ACTIVATION, 1, 0), 0))
    assert meter.waited == 0
    watched(1, Forward(1, 0))
    assert meter.waited > 0.05
    assert did == [0, 1]


def test_the_kernels_count_costs_the_actions_nothing() -> None:
    meter = CoreMeter()

    def perform(index: int, action: Action) -> None: ...

    if core_meter._queue() is not None:
        assert meter.over(perform) is perform
