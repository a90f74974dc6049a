"""Runs of others stand in the history of both databases, and nobody launches them."""

from dataclasses import replace

import pytest

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.errors import InvalidInput
from backend.people.project import Project
from backend.runs.history.brought import TheirRun
from backend.runs.history.labels import MAX_TAG, MAX_TAGS
from backend.runs.history.listing import RunFilter
from backend.runs.history.records import MetricPoint
from backend.runs.request.spec import ImportedSpec
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.services.runs.importing import summary_of
from backend.services.runs.recovery import NothingToResume
from backend.storage.runs.brought import SqlBrought
from tests.contract.belongings import SOURCE

LOSSES = [MetricPoint(0, 0, 2.5, 100.0), MetricPoint(4, 0, float("nan"), 101.0)]
THEIRS = TheirRun(
    tracker="MLflow",
    remote="abc",
    name="theirs",
    state=RunState.SUCCEEDED,
    started=100.0,
    finished=160.0,
    note="as it was",
    parameters={"lr": "0.1"},
    tags=("team, other", "x" * 99, *map(str, range(30))),
    metrics={"loss": LOSSES, "accuracy": [MetricPoint(4, 0, 0.75, 101.0)]},
)


def brought(backend: Backend, definition: Definition, theirs: TheirRun = THEIRS) -> Run:
    spec = ImportedSpec(definition.id, "MLflow", theirs.remote, parameters=dict(theirs.parameters))
    store = SqlBrought(backend.database)
    return backend.runs.get(store.add(theirs, spec, summary_of(theirs), "ann"))


def test_all_that_it_left_is_kept(backend: Backend, definition: Definition) -> None:
    run = brought(backend, definition)
    assert (run.name, run.owner, run.note) == ("theirs", "ann", "as it was")
    assert run.state is RunState.SUCCEEDED
    assert run.kind == "imported"
    assert run.started_at is not None
    assert run.finished_at is not None
    assert (run.finished_at - run.started_at).total_seconds() == 60
    assert (run.summary.accuracy, run.summary.loss) == (0.75, 2.5)
    assert len(run.tags) == MAX_TAGS
    assert {"team  other", "x" * MAX_TAG} <= set(run.tags)
    losses = backend.runs.metrics.list(run.id, "loss")
    assert [(p.step, p.time) for p in losses] == [(0, 100.0), (4, 101.0)]
    assert losses[0].value == 2.5
    assert losses[1].value != losses[1].value


def test_it_is_found_like_any_other(backend: Backend, definition: Definition) -> None:
    run = brought(backend, definition)
    for wanted in (
        RunFilter(kind="imported"),
        RunFilter(min_accuracy=0.7),
        RunFilter(metric="loss", max_metric=3.0),
        RunFilter(definition_id=definition.id),
    ):
        assert [each.id for each in backend.runs.list(wanted).runs] == [run.id]


def test_it_is_imported_once_in_a_project(
    backend: Backend, definition: Definition, vision: Project
) -> None:
    run = brought(backend, definition)
    with pytest.raises(InvalidInput, match=f"run {run.id} is MLflow's run abc already"):
        brought(backend, definition)
    brought(backend, definition, replace(THEIRS, remote="abd"))
    inside = backend.within(vision.id)
    brought(inside, inside.definitions.add("net.py", SOURCE))
    backend.runs.delete(run.id)
    assert brought(backend, definition).id > run.id


def test_nobody_launches_it(backend: Backend, definition: Definition) -> None:
    run = brought(backend, definition)
    with pytest.raises(InvalidInput, match="was imported"):
        backend.runs.retry(run.id)
    with pytest.raises(NothingToResume):
        backend.runs.resume(run.id)
    assert backend.runs.cancel(run.id).state is RunState.SUCCEEDED
