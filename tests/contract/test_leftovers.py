"""What an agent had not written when it died is written by the next one, once."""

from pathlib import Path

import pytest

from backend.bootstrap import Backend
from backend.pipeline.actions import Forward
from backend.pipeline.columns import encode
from backend.pipeline.timeline import Span
from backend.profiles.profile import Layer, ModelGraph, Profile
from backend.runs.attempt import Attempt
from backend.runs.checkpoints import CheckpointFile, Mark
from backend.runs.events import Artifact, Metrics, Spans, write_line
from backend.runs.fence import LeaseLost
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from workers.sandbox.room import work_folder
from workers.supervisor.keeping import Whole
from workers.supervisor.leftover import delivered, spool_folder
from workers.supervisor.spool import Said, Spool, Told, leftovers

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
        Told(write_line(LOSS)),
        Told(write_line(Spans(0, 0, str(work / "spans"), 1))),
        Said(((None, 0.0, "the agent"), (0, 0.0, "a rank"))),
        Told(write_line(Spans(0, 1, str(work / "gone"), 1))),
        Told(write_line(Artifact("weights", str(work / "weights")))),
        Whole(mark, files),
    )
    attempt.metrics(LOSS, 1)
    attempt.spans("measured", 0, 0, encode([Span(0, 0, Forward(0, 0), 0.0, 1.0)]), 1, 2)
    folder = spool_folder(backend.settings)
    Spool(folder, attempt.fence).add(entries)
    (found,) = leftovers(folder)
    return found


def test_the_rest_is_written_once(backend: Backend, attempt: Attempt, path: Path):
    assert delivered(backend, path) == (attempt.run.id, 1)
    run_id = attempt.run.id
    assert [point.step for point in backend.runs.metrics(run_id, "loss")] == [0, 1]
    assert len(backend.runs.span_batches(run_id, "measured", 0)) == 1
    assert [line.text for line in backend.runs.logs(run_id)] == ["the agent", "a rank"]
    assert backend.runs.artifact_path(run_id, "weights").read_bytes() == b"12345"
    assert [kept.mark.step for kept in backend.runs.checkpoints(run_id)] == [1]
    assert attempt.written() == 6
    assert not path.exists()


def test_what_comes_after_another_attempt_is_refused(
    backend: Backend, attempt: Attempt, path: Path
):
    assert backend.dispatch.abandon(attempt.run.id, 1, "here")
    assert delivered(backend, path) == (attempt.run.id, 1)
    assert not backend.runs.logs(attempt.run.id)
    assert not path.exists()
    with pytest.raises(LeaseLost):
        attempt.written()
    with pytest.raises(LeaseLost):
        backend.dispatch.holding(attempt.fence)


@pytest.mark.parametrize("text", [b"no json\n", b'{"run_id": 1}\n', None])
def test_a_spool_that_cannot_be_read_is_put_aside(
    backend: Backend, attempt: Attempt, path: Path, text: bytes | None
):
    path.write_bytes(path.read_bytes() + b'[7, "Whole", {}]\n' if text is None else text)
    assert delivered(backend, path) is None
    assert [left.suffix for left in path.parent.iterdir()] == [".unreadable"]


def test_a_profile_and_a_file_come_once_under_their_number(
    backend: Backend, attempt: Attempt, tmp_path: Path
):
    (tmp_path / "file").write_bytes(b"x")
    kept = [attempt.profile(PROFILE, 1) for _ in range(2)]
    assert kept[0] == kept[1]
    assert len(backend.profiles.list()) == 1
    for _ in range(2):
        attempt.artifact("file", tmp_path / "file", 2)
    assert len(backend.runs.artifacts(attempt.run.id)) == 1
    attempt.finish(RunState.SUCCEEDED, RunSummary())
