"""Going on from a checkpoint at the command line, and what `doctor --deep` finds."""

from pathlib import Path

import pytest

from backend.bootstrap import Backend, connect
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.events import Metrics
from backend.runs.request.spec import TrainSpec
from backend.runs.run import RunError, RunSummary
from backend.runs.states import RunState
from backend.settings import Settings
from backend.storage.soundness import digest
from tests.cli.conftest import Command


@pytest.fixture
def backend(database: None, home: Path) -> Backend:
    return connect(Settings(home=home))


@pytest.fixture
def cancelled(backend: Backend) -> int:
    """A training with a checkpoint, restarted once, then cancelled."""
    definition = backend.definitions.add("tiny.py", b"def model(): ...\n")
    plan = Plan("one", Partition((Stage(0, 1, (0,)),)), "gpipe", 4)
    run = backend.runs.submit(TrainSpec(definition.id, plan))
    for number in (1, 2):
        attempt = backend.dispatch.claim(run.id, f"node-{number}")
        assert attempt is not None
        attempt.running()
        if number == 2:
            attempt.resumed(attempt.beginnings()[0])
            attempt.finish(RunState.CANCELLED, RunSummary())
            break
        attempt.metrics(Metrics("loss", (0, 1), (2.0, 1.0), (0.0, 0.0)))
        folder = attempt.checkpoint_folder(1)
        folder.mkdir(parents=True)
        (folder / "stage-0").write_bytes(b"state")
        sha256 = digest(folder / "stage-0")
        assert sha256 is not None
        attempt.checkpoint(Mark(0, 4, 1), [CheckpointFile("stage-0", 5, sha256)], 3)
        attempt.finish(RunState.FAILED, RunSummary(), RunError("RankKilled", "rank 0 was killed"))
    return run.id


def test_a_cancelled_run_is_resumed(stageflow: Command, backend: Backend, cancelled: int):
    more = ("--epochs", "20", "--lr", "0.25", "--detach", "--json")
    run = backend.runs.get(stageflow("resume", str(cancelled), *more).json["id"])
    assert (run.state, run.origin_id, run.spec.epochs) == (RunState.QUEUED, cancelled, 20)
    assert run.spec.optimizer.learning_rate == 0.25
    refused = stageflow("resume", str(run.id), "--detach")
    assert refused.code == 1
    assert "is queued" in refused.err


def test_attempts_are_listed_with_their_reasons(stageflow: Command, cancelled: int):
    first, second = stageflow("attempts", str(cancelled), "--json").json
    assert (first["node"], first["outcome"]) == ("node-1", "restarted")
    assert first["error"]["message"] == "rank 0 was killed"
    assert (second["outcome"], second["step"]) == ("cancelled", 1)
    assert "rank 0 was killed" in stageflow("attempts", str(cancelled)).out


def test_doctor_looks_deep(stageflow: Command, backend: Backend, cancelled: int):
    sound = stageflow("doctor", "--deep")
    assert "every rule holds" in sound.out
    (backend.runs.checkpoints.list(cancelled)[0].folder / "stage-0").write_bytes(b"stale")
    broken = stageflow("doctor", "--deep", "--json")
    assert broken.code == 1
    assert f"run {cancelled}" in broken.out
