"""A database that was used is sound; every rule tells what breaks it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, update

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.events import Metrics
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from backend.storage.soundness import digest, violations
from backend.storage.tables.tables import AttemptRow, LogRow, MetricRow, RunRow


@pytest.fixture
def used(backend: Backend, definition: Definition, tmp_path: Path) -> Attempt:
    """An ended run with one of everything, and a live one."""
    (tmp_path / "a").write_bytes(b"kept")
    for _ in range(2):
        run = backend.runs.submit(ProfileSpec(definition.id))
        attempt = backend.dispatch.claim(run.id, "here")
        assert attempt is not None
        attempt.running()
    attempt.logs([(0, 0.0, "a"), (0, 0.0, "b")])
    attempt.metrics(Metrics("loss", (0, 1), (1.0, 1.0), (0.0, 0.0)))
    attempt.artifact("a", tmp_path / "a")
    folder = attempt.checkpoint_folder(1)
    folder.mkdir(parents=True)
    (folder / "stage-0").write_bytes(b"state")
    sha256 = digest(folder / "stage-0")
    assert sha256 is not None
    attempt.checkpoint(Mark(0, 4, 1), [CheckpointFile("stage-0", 5, sha256)], 3)
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    return attempt


def test_what_was_used_is_sound(backend: Backend, used: Attempt):
    assert violations(backend.database, backend.settings) == []


def execute(statement: Callable[[int], object]) -> Callable[[Backend, Attempt], None]:
    def act(backend: Backend, attempt: Attempt) -> None:
        with backend.database.write() as session:
            session.execute(statement(attempt.run.id))

    return act


def damage(backend: Backend, attempt: Attempt) -> None:
    (attempt.checkpoint_folder(1) / "stage-0").write_bytes(b"stale")


def lose(backend: Backend, attempt: Attempt) -> None:
    backend.runs.artifacts.path(attempt.run.id, "a").unlink()


BREAKS = {
    "can be read": execute(
        lambda run_id: update(RunRow).where(RunRow.id == run_id).values(summary={"epochs": "x"})
    ),
    "a live run has an agent": execute(
        lambda run_id: update(RunRow).where(RunRow.state == RunState.RUNNING).values(token=None)
    ),
    "given up soon": execute(
        lambda run_id: update(RunRow).where(RunRow.state == RunState.RUNNING).values(lease_until=1)
    ),
    "the time of its end": execute(
        lambda run_id: update(RunRow).where(RunRow.id == run_id).values(finished_at=None)
    ),
    "the last one alone goes on": execute(
        lambda run_id: update(AttemptRow).where(AttemptRow.run_id == run_id).values(outcome=None)
    ),
    "numbered through": execute(
        lambda run_id: delete(LogRow).where(LogRow.run_id == run_id, LogRow.seq == 1)
    ),
    "one value per step": execute(
        lambda run_id: insert(MetricRow).values(
            run_id=run_id, name="loss", step=1, epoch=0, value=1.0, time=0.0
        )
    ),
    "an attempt that there was": execute(
        lambda run_id: update(RunRow).where(RunRow.id == run_id).values(attempt=0)
    ),
    "every kept file": lose,
    "every file of a checkpoint": damage,
}


@pytest.mark.parametrize("rule", BREAKS)
def test_every_broken_rule_is_told(rule: str, backend: Backend, used: Attempt):
    BREAKS[rule](backend, used)
    found = violations(backend.database, backend.settings)
    assert any(rule in one.rule for one in found)
