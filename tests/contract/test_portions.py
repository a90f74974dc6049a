"""Millions of points are deleted, copied and imported in portions, between which others write."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest
from sqlalchemy import Connection, event, func, select

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.errors import NotFound
from backend.runs.events import Metrics
from backend.runs.history.records import MetricPoint
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from backend.storage import portions
from backend.storage.runs import brought as brought_module
from backend.storage.runs import metrics as metrics_module
from backend.storage.runs import removal as removal_module
from backend.storage.runs.metrics import SqlMetrics
from backend.storage.tables.tables import MetricRow
from tests.contract.test_imported_runs import THEIRS, brought

FEW = 3


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (brought_module, metrics_module, removal_module):
        monkeypatch.setattr(module, "ROWS", FEW)


@contextmanager
def counted(backend: Backend) -> Iterator[list[int]]:
    """The points that there are at the beginning and before each commit."""
    count = select(func.count()).select_from(MetricRow)
    with backend.database.read() as session:
        found = [session.scalar(count) or 0]

    def note(connection: Connection) -> None:
        found.append(connection.scalar(count) or 0)

    event.listen(backend.database.engine, "commit", note)
    try:
        yield found
    finally:
        event.remove(backend.database.engine, "commit", note)


def most_at_once(counts: list[int]) -> int:
    return max(abs(after - before) for before, after in pairwise(counts))


@pytest.fixture
def ended(backend: Backend, run: Run) -> Run:
    """With eight losses and eight values of another metric."""
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    for name in ("loss", "f1"):
        steps = tuple(range(8))
        attempt.metrics(Metrics(name, steps, tuple(map(float, steps)), (1.0,) * 8, 0))
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    return backend.runs.get(run.id)


def test_a_run_is_deleted_in_portions(backend: Backend, ended: Run) -> None:
    with counted(backend) as counts:
        backend.runs.delete(ended.id)
    assert (counts[0], counts[-1]) == (16, 0)
    assert most_at_once(counts) == FEW
    with pytest.raises(NotFound):
        backend.runs.get(ended.id)


def test_points_are_copied_in_portions(
    backend: Backend, definition: Definition, ended: Run
) -> None:
    another = backend.runs.submit(ProfileSpec(definition.id))
    with counted(backend) as counts:
        SqlMetrics(backend.database).copy(ended.id, another.id, 5)
    assert (counts[-1] - counts[0], most_at_once(counts)) == (10, FEW)
    for name in ("loss", "f1"):
        points = backend.runs.metrics.list(ended.id, name)
        assert backend.runs.metrics.list(another.id, name) == points[:5]


LONG = replace(THEIRS, metrics={"loss": [MetricPoint(step, 0, 0.5, 100.0) for step in range(8)]})


def test_a_history_is_imported_in_portions(backend: Backend, definition: Definition) -> None:
    with counted(backend) as counts:
        run = brought(backend, definition, LONG)
    assert (counts[-1] - counts[0], most_at_once(counts)) == (8, FEW)
    assert backend.runs.metrics.list(run.id, "loss") == LONG.metrics["loss"]


def test_nothing_stays_of_a_history_that_cannot_be_imported(
    backend: Backend, definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_early(starts: range) -> Iterator[int]:
        yield starts[0]
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, counted(backend) as counts:
        patched.setattr(brought_module, "in_turns", end_early)
        with pytest.raises(KeyboardInterrupt):
            brought(backend, definition, LONG)
    assert FEW in counts
    assert counts[-1] == 0
    assert backend.runs.metrics.list(brought(backend, definition, LONG).id, "loss")


def test_others_have_as_much_time_as_a_portion_took(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [0.0], list[float]()
    monkeypatch.setattr(portions.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(portions.time, "sleep", slept.append)
    for seconds in portions.in_turns((0.01, 0.05, 3.0)):
        now[0] += seconds
    assert slept == pytest.approx([0.01, 0.05, portions.LONGEST_PAUSE])
