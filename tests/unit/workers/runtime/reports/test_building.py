"""Making a model has a limit, and says where it is."""

import os
import threading
from dataclasses import replace
from itertools import count

import pytest

from backend.runs.events import Event, Progress, RankError
from backend.runs.job import Job
from backend.runs.request.spec import ProfileSpec
from workers.runtime.reports import building as module
from workers.runtime.reports.building import building
from workers.runtime.reports.reporter import Reporter

JOB = Job(1, 1, "net", ProfileSpec(1), "", "", build_seconds=0.2)


class Heard(Reporter):
    """Keeps what is told."""

    def __init__(self) -> None:
        super().__init__(rank=3)
        self.events: list[Event] = []
        self.lines: list[str] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def log(self, text: str) -> None:
        self.lines.append(text)


def never_ends(ended: threading.Event) -> None:
    """As a model's loop that depends on nothing; here until the process would have ended."""
    for _ in count():
        if ended.wait(0.001):
            return


def test_a_loop_without_end_is_told_with_its_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, codes = threading.Event(), []
    monkeypatch.setattr(module, "NOTICE", 0.05)
    monkeypatch.setattr(os, "_exit", lambda code: (codes.append(code), ended.set()))
    told = Heard()
    with building(told, JOB):
        never_ends(ended)
    notices = [event for event in told.events if isinstance(event, Progress)]
    assert notices[0].phase.startswith("building the model for 0 of 0 s, at ")
    assert "in never_ends" in told.lines[0]
    (fault,) = [event for event in told.events if isinstance(event, RankError)]
    assert (fault.rank, fault.kind, codes) == (3, "BuildTookTooLong", [1])
    assert "took longer than 0.2 s" in fault.message
    assert "STAGEFLOW_BUILD" in fault.advice
    assert "in never_ends" in fault.detail


def test_what_has_been_built_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch ends with the block, and inside it with `started`."""
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail("ended"))
    told, quick = Heard(), replace(JOB, build_seconds=1.0)
    watching = threading.active_count()
    with building(told, quick):
        told.has_started.set()
        while threading.active_count() > watching:
            threading.Event().wait(0.001)
    assert not told.events
    with building(told, JOB):
        pass
    assert not told.lines
