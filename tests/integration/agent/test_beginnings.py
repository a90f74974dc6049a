"""An attempt begins at the newest checkpoint that is whole, whatever became of the others."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from backend.bootstrap import Backend
from backend.codec import from_json
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.events import Metrics
from backend.runs.job import Job
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run, RunError, RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from workers.supervisor.setup.preparation import job_file, prepare
from workers.supervisor.setup.resuming import CheckpointGone, resumed

Queued = Callable[[str], Run]
NAMES = ("stage-0-lane-0.safetensors", "stage-1-lane-0.safetensors")


def claim(backend: Backend, run: Run) -> Attempt:
    attempt = backend.dispatch.claim(run.id, "tester")
    assert attempt is not None
    attempt.running()
    return attempt


def keep(attempt: Attempt, step: int) -> None:
    folder, files = attempt.checkpoint_folder(step), []
    folder.mkdir(parents=True)
    for name in NAMES:
        text = f"{name} after {step}".encode()
        (folder / name).write_bytes(text)
        files.append(CheckpointFile(name, len(text), hashlib.sha256(text).hexdigest()))
    attempt.checkpoint(Mark(0, 4 * step, step), files, 3)


@pytest.fixture
def second(backend: Backend, queued: Queued) -> Attempt:
    """The second attempt at a run whose first left checkpoints after 2 and 4 updates."""
    first = claim(backend, queued("def work(rank, say, folder): ..."))
    first.metrics(Metrics("loss", tuple(range(6)), (1.0,) * 6, (0.0,) * 6))
    keep(first, 2)
    keep(first, 4)
    first.finish(RunState.FAILED, RunSummary(), RunError("RankKilled", "killed"))
    return claim(backend, first.run)


def begun(backend: Backend, attempt: Attempt) -> tuple[Job, list[str]]:
    """The job that the ranks find, and what was said."""
    folder = backend.settings.run_folder(attempt.run.id, attempt.number)
    said: list[str] = []
    job = resumed(attempt, prepare(backend, attempt.run, folder), said.append)
    assert from_json(Job, job_file(job).read_bytes()) == job
    return job, said


def num_losses(backend: Backend, attempt: Attempt) -> int:
    return len(backend.runs.metrics.list(attempt.run.id, "loss"))


def test_the_newest_is_laid_out_where_the_ranks_may_read(backend: Backend, second: Attempt):
    job, said = begun(backend, second)
    assert (job.epoch, job.samples) == (0, 16)
    assert Path(job.checkpoint).parent == Path(job.definition).parent
    found = {path.name: path.read_text() for path in Path(job.checkpoint).iterdir()}
    assert found == {name: f"{name} after 4" for name in NAMES}
    assert said == ["continuing from the checkpoint of attempt 1 after 4 steps"]
    assert num_losses(backend, second) == 4


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"half")])
def test_a_damaged_one_is_passed_over(backend: Backend, second: Attempt, damage):
    damage(second.beginnings()[0].folder / NAMES[1])
    job, said = begun(backend, second)
    assert job.samples == 8
    assert "trying the one before" in said[0]
    assert num_losses(backend, second) == 2


def test_without_any_that_is_whole_it_begins_anew(backend: Backend, second: Attempt):
    for checkpoint in second.beginnings():
        (checkpoint.folder / NAMES[0]).unlink()
    job, _ = begun(backend, second)
    assert job.checkpoint == ""
    assert num_losses(backend, second) == 0


def test_a_run_that_was_to_go_on_from_one_that_is_gone_says_so(backend: Backend, second: Attempt):
    second.finish(RunState.CANCELLED, RunSummary())
    run = backend.runs.resume(second.run.id)
    for checkpoint in backend.runs.checkpoints.list(second.run.id):
        (checkpoint.folder / NAMES[0]).unlink()
    with pytest.raises(CheckpointGone, match="cannot be read"):
        begun(backend, claim(backend, run))


def test_what_never_became_whole_is_removed(backend: Backend, second: Attempt):
    half = second.checkpoint_folder(9).with_name("1-9")
    half.mkdir()
    begun(backend, second)
    assert not half.exists()
    assert all(checkpoint.folder.is_dir() for checkpoint in second.beginnings())


def test_another_run_of_the_same_plan_counts_on(backend: Backend, second: Attempt):
    second.finish(RunState.CANCELLED, RunSummary())
    spec = second.run.spec
    assert isinstance(spec, TrainSpec)
    run = backend.runs.resume(second.run.id)
    assert num_losses(backend, claim(backend, run)) == 4
    other = replace(spec.plan, batch=2, schedule="gpipe")
    resumed_otherwise = backend.runs.resume(second.run.id, plan=other)
    assert num_losses(backend, claim(backend, resumed_otherwise)) == 0
