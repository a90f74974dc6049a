"""What an agent had not written when it died is written by the next one, once."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backend.bootstrap import Backend, connect
from backend.pipeline.actions import Forward
from backend.pipeline.columns import encode
from backend.pipeline.timeline import Span, Timeline
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.attempts.fence import LeaseLost
from backend.runs.events import Artifact, Metrics, Spans, write_line
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from workers.sandbox.room import work_folder
from workers.supervisor.reporting.spool_recovery import left_spools, recovered
from workers.supervisor.spool.entries import CopiedCheckpoint, EventLine, LogLines
from workers.supervisor.spool.spool import Spool

PROFILE = Profile("tiny", ModelGraph.chain((Layer("a", "Linear", 1e-3, 2e-3, 64, 128),)), 8)
LOSS = Metrics("loss", (0, 1), (2.0, 1.0), (0.0, 0.0))


@pytest.fixture
def attempt(backend: Backend, run: Run) -> Attempt:
    claimed = backend.dispatch.claim(run.id, "here")
    assert claimed is not None
    claimed.running()
    return claimed


@pytest.fixture
def path(backend: Backend, attempt: Attempt) -> Path:
    """A spool with one of everything, of which the first two are in the database already; the
    file of the timeline went with the first one's work, that of the artifact is there."""
    work = work_folder(backend.settings.run_folder(attempt.run.id, 1))
    work.mkdir(parents=True)
    (work / "weights").write_bytes(b"12345")
    mark, files = Mark(0, 4, 1), (CheckpointFile("stage-0", 5, "ab"),)
    entries = (
        EventLine(write_line(LOSS)),
        EventLine(write_line(Spans(0, 0, str(work / "spans"), 1))),
        LogLines(((None, 0.0, "the agent"), (0, 0.0, "a rank"))),
        EventLine(write_line(Spans(0, 1, str(work / "gone"), 1))),
        EventLine(write_line(Artifact("weights", str(work / "weights")))),
        CopiedCheckpoint(mark, files),
    )
    attempt.metrics(LOSS, 1)
    attempt.spans(
        "measured", 0, 0, encode(Timeline.of([Span(0, 0, Forward(0, 0), 0.0, 1.0)])), 1, 2
    )
    folder = backend.settings.spool_folder
    spool = Spool.of(folder, attempt.fence)
    spool.add(entries)
    spool.close()
    (found,) = left_spools(folder)
    return found


def test_the_rest_is_written_once(backend: Backend, attempt: Attempt, path: Path):
    assert recovered(backend, path) == (attempt.run.id, 1)
    run_id = attempt.run.id
    assert [point.step for point in backend.runs.metrics.list(run_id, "loss")] == [0, 1]
    assert len(backend.runs.spans.list(run_id, "measured", 0)) == 1
    assert [line.text for line in backend.runs.logs.list(run_id)] == ["the agent", "a rank"]
    assert backend.runs.artifacts.path(run_id, "weights").read_bytes() == b"12345"
    assert [kept.mark.step for kept in backend.runs.checkpoints.list(run_id)] == [1]
    assert attempt.written() == 6
    assert not path.exists()


def test_an_agent_of_that_name_with_another_home_finds_it_in_the_shared_folder(
    backend: Backend, attempt: Attempt, path: Path, tmp_path: Path
):
    """The first agent's home went with its machine; what only lay there is lost, and said."""
    settings = backend.settings
    shutil.rmtree(settings.run_folder(attempt.run.id, 1))
    elsewhere = {
        "home": tmp_path / "other",
        "shared": str(settings.home),
        "database_url": backend.settings.sql_url,
    }
    other = connect(settings.model_copy(update=elsewhere))
    (found,) = left_spools(other.settings.spool_folder)
    assert found == path
    assert recovered(other, found) == (attempt.run.id, 1)
    run_id = attempt.run.id
    assert [line.text for line in other.runs.logs.list(run_id)] == ["the agent", "a rank"]
    assert [kept.mark.step for kept in other.runs.checkpoints.list(run_id)] == [1]
    assert not other.runs.artifacts.list(run_id)
    assert attempt.written() == 6
    other.close()


def test_what_comes_after_another_attempt_is_refused(
    backend: Backend, attempt: Attempt, path: Path
):
    assert backend.dispatch.abandon(attempt.run.id, 1, "here")
    assert recovered(backend, path) == (attempt.run.id, 1)
    assert not backend.runs.logs.list(attempt.run.id)
    assert not path.exists()
    with pytest.raises(LeaseLost):
        attempt.written()
    with pytest.raises(LeaseLost):
        backend.dispatch.holding(attempt.fence)


def damage_entry(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO entries (fields) VALUES ('{}')")


def damage_file(path: Path) -> None:
    path.write_bytes(b"no database at all")


def leave_out_fence(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [damage_entry, damage_file, leave_out_fence])
def test_a_spool_that_cannot_be_read_is_put_aside(backend: Backend, path: Path, damage):
    damage(path)
    assert recovered(backend, path) is None
    assert [left.suffix for left in path.parent.iterdir()] == [".unreadable"]


@pytest.mark.parametrize("text", ["no json\n", '{"run_id": 1}\n{}\n', '[1, "Told"]\n[2]\n'])
def test_an_older_versions_spool_that_cannot_be_read_is_put_aside(tmp_path: Path, text: str):
    (tmp_path / "1-1-a.spool").write_text(text)
    assert left_spools(tmp_path) == []
    assert [left.name for left in tmp_path.iterdir()] == ["1-1-a.spool.unreadable"]


def test_a_profile_and_a_file_come_once_under_their_number(
    backend: Backend, attempt: Attempt, tmp_path: Path
):
    (tmp_path / "file").write_bytes(b"x")
    kept = [attempt.profile(PROFILE, 1) for _ in range(2)]
    assert kept[0] == kept[1]
    assert len(backend.profiles.list()) == 1
    for _ in range(2):
        attempt.artifact("file", tmp_path / "file", 2)
    assert len(backend.runs.artifacts.list(attempt.run.id)) == 1
    attempt.finish(RunState.SUCCEEDED, RunSummary())
