"""Checkpoints, attempts and restarts, and that every write of an attempt happens once."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.errors import InvalidInput, NotFound
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.attempts.checkpoints import (
    ALL_RESTARTS,
    FAULTS,
    NOT_BEGUN,
    RESTARTS,
    CheckpointFile,
    Mark,
)
from backend.runs.attempts.fence import LeaseLost
from backend.runs.events import Metrics
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.run import RunError, RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from backend.services.runs.dispatch import DispatchService
from backend.services.runs.recovery import NothingToResume
from backend.services.runs.runs import NotEnded
from backend.services.runs.stores import Stores

KILLED = RunError("RankKilled", "rank 0 was killed by signal 9")
ONE = Plan("one", Partition((Stage(0, 1, (0,)),)), "gpipe", 4)


@pytest.fixture
def spec(definition: Definition) -> TrainSpec:
    return TrainSpec(definition.id, ONE)


@pytest.fixture
def begun(backend: Backend, spec: TrainSpec) -> Callable[[], Attempt]:
    """A new training, claimed."""

    def begin() -> Attempt:
        return again(backend, backend.runs.submit(spec).id)

    return begin


def again(backend: Backend, run_id: int) -> Attempt:
    attempt = backend.dispatch.claim(run_id, "here")
    assert attempt is not None
    attempt.running()
    return attempt


def kept(attempt: Attempt, step: int, keep: int = 3, *, best: bool = False) -> None:
    """Commit a checkpoint after `step` updates, its file in its folder."""
    folder = attempt.checkpoint_folder(step)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stage-0.safetensors").write_bytes(b"12345")
    file = CheckpointFile("stage-0.safetensors", 5, "ab")
    attempt.checkpoint(Mark(0, step * 4, step, best), [file], keep)


def fail(attempt: Attempt, kind: str = "RankKilled") -> None:
    attempt.finish(RunState.FAILED, RunSummary(), replace(KILLED, kind=kind))


def test_the_newest_checkpoints_stay_with_their_files(backend: Backend, begun):
    attempt = begun()
    for step in (1, 2, 3, 4):
        kept(attempt, step, keep=2)
    newest, before = backend.runs.checkpoints.list(attempt.run.id)
    assert [newest.mark, before.mark] == [Mark(0, 16, 4), Mark(0, 12, 3)]
    assert (newest.size, newest.attempt) == (5, 1)
    assert sorted(newest.folder.parent.iterdir()) == [before.folder, newest.folder]


def test_the_same_checkpoint_again_changes_nothing(backend: Backend, begun):
    attempt = begun()
    kept(attempt, 1)
    attempt.checkpoint(Mark(0, 4, 1), [CheckpointFile("stage-0.safetensors", 5, "ab")], 3)
    assert len(backend.runs.checkpoints.list(attempt.run.id)) == 1


def test_a_lost_attempt_commits_nothing(backend: Backend, begun):
    attempt = begun()
    kept(attempt, 1)
    fail(attempt)
    with pytest.raises(LeaseLost):
        kept(attempt, 2)
    assert [c.mark.step for c in backend.runs.checkpoints.list(attempt.run.id)] == [1]


@pytest.mark.parametrize("kind", [*sorted(FAULTS), "LossNotFinite", "OutOfMemory", "ModelRaised"])
def test_a_fault_restarts_from_a_checkpoint_and_a_mistake_fails(kind: str, backend: Backend, begun):
    attempt = begun()
    kept(attempt, 1)
    fail(attempt, kind)
    run = backend.runs.get(attempt.run.id)
    (told,) = backend.runs.attempts(run.id)
    assert told.error is not None
    assert told.error.kind == kind
    if kind in FAULTS:
        assert (run.state, run.error, told.outcome) == (RunState.QUEUED, None, "restarted")
        assert run.id in backend.dispatch.waiting_for("here")
    else:
        assert (run.state, told.outcome) == (RunState.FAILED, "failed")


def test_without_a_checkpoint_or_with_a_cancel_a_fault_ends_the_run(backend: Backend, begun):
    fruitless, cancelled = begun(), begun()
    fail(fruitless)
    kept(cancelled, 1)
    backend.runs.cancel(cancelled.run.id)
    fail(cancelled)
    for attempt in (fruitless, cancelled):
        assert backend.runs.get(attempt.run.id).state is RunState.FAILED


def test_a_run_that_has_not_begun_goes_back_to_the_queue(backend: Backend, begun):
    """Such attempts are none in vain: however many there are, the run keeps its tries."""
    attempt = begun()
    for _ in range(RESTARTS + 1):
        fail(attempt, NOT_BEGUN)
        assert attempt.run.id in backend.dispatch.waiting_for("here")
        attempt = again(backend, attempt.run.id)
    kept(attempt, 1)
    for _ in range(RESTARTS):
        fail(attempt)
        attempt = again(backend, attempt.run.id)
    fail(attempt)
    assert backend.runs.get(attempt.run.id).state is RunState.FAILED
    assert len(backend.runs.attempts(attempt.run.id)) == RESTARTS + 1 + 1 + RESTARTS


def test_a_cancel_ends_a_run_that_has_not_begun_and_so_do_very_many_attempts(
    backend: Backend, begun
):
    cancelled, endless = begun(), begun()
    backend.runs.cancel(cancelled.run.id)
    fail(cancelled, NOT_BEGUN)
    for _ in range(ALL_RESTARTS - 1):
        fail(endless, NOT_BEGUN)
        endless = again(backend, endless.run.id)
    fail(endless, NOT_BEGUN)
    for attempt in (cancelled, endless):
        ended = backend.runs.get(attempt.run.id)
        assert ended.state is RunState.FAILED
        assert ended.error is not None
        assert ended.error.kind == NOT_BEGUN


def test_restarts_without_a_newer_checkpoint_are_bounded(backend: Backend, begun):
    attempt = begun()
    kept(attempt, 1)
    for _ in range(RESTARTS):
        fail(attempt)
        attempt = again(backend, attempt.run.id)
    fail(attempt)
    assert backend.runs.get(attempt.run.id).state is RunState.FAILED
    assert len(backend.runs.attempts(attempt.run.id)) == 1 + RESTARTS


def test_a_newer_checkpoint_counts_restarts_anew(backend: Backend, begun):
    attempt = begun()
    kept(attempt, 1)
    for step in range(2, 4 + RESTARTS):
        fail(attempt)
        attempt = again(backend, attempt.run.id)
        kept(attempt, step)
    fail(attempt)
    assert backend.runs.get(attempt.run.id).state is RunState.QUEUED


def test_a_checkpoint_of_no_training_counts_for_nothing(backend: Backend, begun):
    attempt = begun()
    kept(attempt, 5)
    for _ in range(RESTARTS):
        fail(attempt)
        attempt = again(backend, attempt.run.id)
        attempt.resumed(attempt.beginnings()[0])
        kept(attempt, 5)
    fail(attempt)
    assert backend.runs.get(attempt.run.id).state is RunState.FAILED
    assert len(backend.runs.attempts(attempt.run.id)) == 1 + RESTARTS


def test_all_attempts_that_ranks_end_are_bounded_and_their_time_counts(backend: Backend, begun):
    attempt = begun()
    for step in range(1, ALL_RESTARTS):
        kept(attempt, step)
        fail(attempt)
        attempt = again(backend, attempt.run.id)
        attempt.resumed(attempt.beginnings()[0])
    ended = backend.runs.attempts(attempt.run.id)[:-1]
    times = [(each.finished_at - each.started_at).total_seconds() for each in ended]
    assert attempt.spent == pytest.approx(sum(times))
    kept(attempt, ALL_RESTARTS)
    fail(attempt)
    assert backend.runs.get(attempt.run.id).state is RunState.FAILED


def test_the_best_checkpoint_stays_beside_the_newest(backend: Backend, begun):
    attempt = begun()

    def steps() -> list[tuple[int, bool]]:
        marks = [each.mark for each in backend.runs.checkpoints.list(attempt.run.id)]
        return [(mark.step, mark.best) for mark in marks]

    for step in (1, 2, 3, 4):
        kept(attempt, step, keep=2, best=step == 2)
    assert steps() == [(4, False), (3, False), (2, True)]
    kept(attempt, 4, keep=2, best=True)  # known only now
    kept(attempt, 5, keep=2)
    kept(attempt, 6, keep=2)
    assert steps() == [(6, False), (5, False), (4, True)]
    folders = [each.folder for each in backend.runs.checkpoints.list(attempt.run.id)]
    assert sorted(folders[0].parent.iterdir()) == sorted(folders)
    attempt.finish(RunState.CANCELLED, RunSummary())
    resumed = backend.runs.resume(attempt.run.id, best=True)
    assert isinstance(resumed.spec, TrainSpec)
    assert resumed.spec.checkpoint_id is not None
    assert backend.runs.checkpoints.get(resumed.spec.checkpoint_id).mark.step == 4


def test_without_a_best_evaluation_nothing_is_resumed_from_it(backend: Backend, begun):
    attempt = begun()
    kept(attempt, 1)
    attempt.finish(RunState.CANCELLED, RunSummary())
    with pytest.raises(NothingToResume, match="no checkpoint of its best evaluation"):
        backend.runs.resume(attempt.run.id, best=True)


def test_an_attempt_goes_on_where_the_newest_checkpoint_was(backend: Backend, begun):
    first = begun()
    first.metrics(Metrics("loss", (0, 1, 2), (3.0, 2.0, 1.0), (0.0, 0.0, 0.0)), 1)
    kept(first, 2)
    fail(first)
    second = again(backend, first.run.id)
    (beginning,) = second.beginnings()
    second.resumed(beginning)
    second.metrics(Metrics("loss", (2, 3), (1.0, 0.5), (0.0, 0.0)), 1)
    points = backend.runs.metrics.list(first.run.id, "loss")
    assert [(p.step, p.value) for p in points] == [(0, 3.0), (1, 2.0), (2, 1.0), (3, 0.5)]
    assert [a.step for a in backend.runs.attempts(first.run.id)] == [None, 2]


def test_a_numbered_write_happens_once(backend: Backend, begun):
    attempt = begun()
    loss = Metrics("loss", (0,), (1.0,), (0.0,))
    for _ in range(2):
        attempt.logs([(0, 0.0, "hello")], 1)
        attempt.metrics(loss, 2)
        attempt.logs([(0, 0.0, "late")], 1)
        attempt.spans("measured", 0, 0, b"", 0, 3)
    assert [line.text for line in backend.runs.logs.list(attempt.run.id)] == ["hello"]
    assert len(backend.runs.metrics.list(attempt.run.id, "loss")) == 1
    assert len(backend.runs.spans.list(attempt.run.id, "measured", 0)) == 1


def test_a_segment_done_twice_shows_the_newest_attempt(backend: Backend, begun):
    first = begun()
    kept(first, 1)
    first.spans("measured", 0, 3, b"old", 1)
    fail(first)
    again(backend, first.run.id).spans("measured", 0, 3, b"new", 1)
    (batch,) = backend.runs.spans.list(first.run.id, "measured", 3)
    assert batch.data == b"new"


def test_a_run_of_a_dead_agent_is_given_up_at_once(backend: Backend, begun):
    attempt = begun()
    kept(attempt, 1)
    assert not backend.dispatch.expire()
    assert not backend.dispatch.abandon(attempt.run.id, 1, "elsewhere")
    assert not backend.dispatch.abandon(attempt.run.id, 2, "here")
    assert backend.dispatch.abandon(attempt.run.id, 1, "here")
    assert backend.runs.get(attempt.run.id).state is RunState.QUEUED
    with pytest.raises(LeaseLost):
        attempt.beat()


def test_an_ended_lease_queues_a_run_that_has_a_checkpoint(
    backend: Backend, stores: Stores, spec: TrainSpec
):
    """Two reapers look at the same moment: one of them gives the run up."""
    dispatch = DispatchService(stores, backend.queue, backend.notifier, -1.0)
    attempt = dispatch.claim(backend.runs.submit(spec).id, "here")
    assert attempt is not None
    kept(attempt, 1)
    (lost,) = stores.runs.lost()
    assert list(dispatch.expire()) == [lost.id]
    assert not stores.runs.give_up(lost, RunState.FAILED, KILLED)
    assert backend.runs.get(lost.id).state is RunState.QUEUED


def test_resume_makes_a_new_run_that_begins_with_the_old_curve(backend: Backend, begun):
    attempt = begun()
    attempt.metrics(Metrics("loss", (0, 1), (2.0, 1.0), (0.0, 0.0)), 1)
    kept(attempt, 1)
    with pytest.raises(NotEnded, match="is running"):
        backend.runs.resume(attempt.run.id)
    attempt.finish(RunState.CANCELLED, RunSummary())
    with pytest.raises(InvalidInput, match="learning rate -1"):
        backend.runs.resume(attempt.run.id, learning_rate=-1.0)
    resumed = backend.runs.resume(attempt.run.id, epochs=20, learning_rate=0.25)
    assert isinstance(resumed.spec, TrainSpec)
    (checkpoint,) = backend.runs.checkpoints.list(attempt.run.id)
    assert (resumed.origin_id, resumed.spec.epochs) == (attempt.run.id, 20)
    assert resumed.spec.optimizer == replace(attempt.run.spec.optimizer, learning_rate=0.25)
    assert resumed.spec.checkpoint_id == checkpoint.id
    assert [p.step for p in backend.runs.metrics.list(resumed.id, "loss")] == [0]
    assert list(again(backend, resumed.id).beginnings()) == [checkpoint]


def test_what_left_no_checkpoint_cannot_be_resumed(backend: Backend, begun, definition: Definition):
    attempt = begun()
    fail(attempt, "ModelRaised")
    profile = backend.runs.submit(ProfileSpec(definition.id))
    backend.runs.cancel(profile.id)
    for run_id in (attempt.run.id, profile.id):
        with pytest.raises(NothingToResume, match="has no checkpoint"):
            backend.runs.resume(run_id)
    with pytest.raises(NotFound):
        backend.runs.resume(10_000)


def test_a_deleted_run_takes_its_checkpoints_away(backend: Backend, begun):
    attempt = begun()
    kept(attempt, 1)
    folder = backend.runs.checkpoints.list(attempt.run.id)[0].folder
    attempt.finish(RunState.CANCELLED, RunSummary())
    resumed = backend.runs.resume(attempt.run.id)
    backend.runs.delete(attempt.run.id)
    assert not folder.parent.exists()
    assert not again(backend, resumed.id).beginnings()
