"""Old runs lose their logs, timelines and checkpoints by rule; nothing else, and none too early."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from backend.bootstrap import Backend
from backend.people.project import DEFAULT_PROJECT, Retention
from backend.people.rights import RIGHTS, Actor, Role
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.events import Metrics
from backend.runs.history.labels import Change
from backend.runs.request.spec import TrainSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from backend.services.people.access import NotAllowed
from backend.services.runs.retention import RetentionService
from backend.storage.people.projects import SqlProjects
from backend.storage.runs.checkpoints import SqlCheckpoints
from backend.storage.runs.retention import SqlClearing
from backend.storage.soundness import violations

PLAN = Plan("even", Partition((Stage(0, 1, (0,)),)), "pipedream", 8)


def trained(backend: Backend) -> int:
    """An ended training with a log, metrics, a file and a checkpoint."""
    model = backend.definitions.add("net.py", b"def model():\n    return None\n")
    run = backend.runs.submit(TrainSpec(model.id, PLAN))
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    attempt.logs([(0, 0.0, "a line")])
    attempt.metrics(Metrics("loss", (1,), (0.5,), (0.0,)))
    folder = attempt.checkpoint_folder(1)
    folder.mkdir(parents=True)
    (folder / "stage-0").write_bytes(b"w")
    digest = sha256(b"w").hexdigest()
    attempt.checkpoint(Mark(0, 8, 1), [CheckpointFile("stage-0", 1, digest)], keep=3)
    attempt.finish(RunState.SUCCEEDED, RunSummary(loss=0.5))
    return run.id


def after(backend: Backend, days: float, actor: Actor | None = None) -> RetentionService:
    """The service as it will be in so many days."""
    database, settings = backend.database, backend.settings
    access = backend.access if actor is None else backend.acting(actor).access
    return RetentionService(
        SqlProjects(database),
        SqlClearing(database),
        SqlCheckpoints(database, settings.checkpoints_folder),
        access,
        lambda: datetime.now(UTC) + timedelta(days=days),
    )


def is_whole(backend: Backend, run_id: int) -> bool:
    found = (backend.runs.logs.list(run_id), backend.runs.checkpoints.list(run_id))
    assert bool(found[0]) == bool(found[1])
    return bool(found[0])


def rule(backend: Backend, **values: int | bool) -> None:
    backend.projects.retain(DEFAULT_PROJECT, Retention(**values))


def test_without_a_rule_everything_stays(backend: Backend):
    run = trained(backend)
    assert after(backend, 10_000).clean() == []
    assert is_whole(backend, run)


def test_old_runs_are_cleared_once_and_the_log_says_so(backend: Backend):
    run = trained(backend)
    rule(backend, days=30)
    before = backend.runs.get(run)
    assert after(backend, 29).clean() == []
    late = after(backend, 31)
    ((project, ids),) = late.due()
    assert (project.id, list(ids)) == (DEFAULT_PROJECT, [run])
    assert is_whole(backend, run)  # asking takes nothing away
    assert late.clean() == [run]
    assert not is_whole(backend, run)
    assert not list(backend.settings.checkpoints_folder.glob("*/*"))
    after_it = backend.runs.get(run)
    assert after_it.summary == before.summary
    assert before.cleared_at is None
    assert after_it.cleared_at is not None
    assert replace(after_it, cleared_at=None) == before
    assert backend.runs.metrics.names(run) == ["loss"]
    assert late.clean() == []
    entry = backend.audit.list(limit=1)[0]
    assert (entry.action, entry.target) == ("clear", f"run {run}")
    assert violations(backend.database, backend.settings) == []


def test_the_newest_the_starred_and_those_that_are_needed_stay(backend: Backend):
    old, starred, needed, newest = (trained(backend) for _ in range(4))
    backend.labels.change([starred], Change(starred=True))
    waiting = backend.runs.resume(needed)
    rule(backend, days=1, last=2)  # the newest run is the one that waits
    assert after(backend, 2).clean() == [old]
    assert all(is_whole(backend, run) for run in (starred, needed, newest))
    backend.runs.cancel(waiting.id)
    assert after(backend, 2).clean() == [needed]
    rule(backend, days=1, last=0, starred=False)
    assert after(backend, 2).clean() == [starred, newest, waiting.id]


def test_only_who_manages_the_team_cleans(backend: Backend):
    editor = Actor("Ed", Role.EDITOR, RIGHTS[Role.EDITOR])
    for act in (after(backend, 0, editor).due, after(backend, 0, editor).clean):
        with pytest.raises(NotAllowed):
            act()
