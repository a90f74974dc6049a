"""Ended runs are taken away with everything that is their own, and nothing else."""

import time
from pathlib import Path

import pytest
from sqlalchemy import func, select

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.errors import NotFound
from backend.pipeline.actions import Forward
from backend.pipeline.columns import encode
from backend.pipeline.timeline import Span, Timeline
from backend.runs.attempts.fence import LeaseLost
from backend.runs.events import Metrics
from backend.runs.history.labels import Change
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from backend.services.runs.runs import NotEnded
from backend.storage.tables.base import Base
from tests.app.seed import a_profile


def recorded(backend: Backend, definition: Definition, file: Path) -> tuple[Run, Attempt]:
    """A run that has ended and left something in every table."""
    run = backend.runs.submit(ProfileSpec(definition.id))
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    attempt.logs([(0, time.time(), "a line")])
    attempt.metrics(Metrics("loss", (0, 1), (2.0, 1.0), (1.0, 2.0), 0))
    attempt.spans("measured", 0, 0, encode(Timeline.of([Span(0, 0, Forward(0, 0), 0.0, 1.0)])), 1)
    attempt.artifact("weights", file)
    profile = attempt.profile(a_profile())
    backend.labels.change([run.id], Change(add=("kept",)))
    attempt.finish(RunState.SUCCEEDED, RunSummary(profile_id=profile))
    return backend.runs.get(run.id), attempt


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(b"12345")
    return path


def rows(backend: Backend) -> dict[str, int]:
    with backend.database.read() as session:
        return {
            name: session.scalar(select(func.count()).select_from(table)) or 0
            for name, table in Base.metadata.tables.items()
        }


def test_a_run_goes_with_all_its_rows_and_files(backend, definition, file) -> None:
    before = rows(backend)
    run, _ = recorded(backend, definition, file)
    folder = backend.settings.artifacts_folder
    assert backend.runs.artifacts.list(run.id)[0].path.is_file()
    assert backend.runs.delete(run.id) == run
    with pytest.raises(NotFound):
        backend.runs.get(run.id)
    after = rows(backend)
    stays = {"profiles", "contents", "audit_log"}
    assert {name for name in after if after[name] != before[name]} <= stays
    assert not list(folder.iterdir())


def test_other_runs_keep_their_rows_and_the_file_that_both_have(backend, definition, file) -> None:
    gone, _ = recorded(backend, definition, file)
    stays, _ = recorded(backend, definition, file)
    backend.runs.delete(gone.id)
    assert backend.runs.artifacts.path(stays.id, "weights").read_bytes() == b"12345"
    assert [line.text for line in backend.runs.logs.list(stays.id)] == ["a line"]
    assert len(backend.runs.metrics.list(stays.id, "loss")) == 2
    assert backend.runs.spans.segments(stays.id) == [0]
    assert backend.runs.get(stays.id) == stays


def test_what_was_measured_and_made_from_it_stays(backend, definition, file) -> None:
    run, _ = recorded(backend, definition, file)
    again = backend.runs.retry(run.id)
    backend.runs.delete(run.id)
    assert run.summary.profile_id is not None
    assert backend.profiles.get(run.summary.profile_id).run_id is None
    assert backend.runs.get(again.id).origin_id is None


@pytest.mark.parametrize("is_live", [False, True])
def test_a_run_that_may_still_succeed_is_refused(backend: Backend, run: Run, is_live: bool) -> None:
    if is_live:
        assert backend.dispatch.claim(run.id, "here") is not None
    with pytest.raises(NotEnded) as caught:
        backend.runs.delete(run.id)
    assert "Cancel it first" in caught.value.advice
    assert backend.runs.get(run.id)


def test_the_store_itself_refuses_what_has_not_ended(stores, run: Run) -> None:
    assert not stores.runs.delete(run.id)
    assert stores.runs.get(run.id) == run
    assert not stores.runs.delete(run.id + 99)


def test_an_agent_that_comes_late_writes_nothing(backend, definition, file) -> None:
    run, attempt = recorded(backend, definition, file)
    backend.runs.delete(run.id)
    before = rows(backend)
    for late in (
        lambda: attempt.logs([(0, time.time(), "late")]),
        lambda: attempt.artifact("weights", file),
    ):
        with pytest.raises(LeaseLost):
            late()
    assert rows(backend) == before
