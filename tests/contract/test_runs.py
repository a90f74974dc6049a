"""The life of a run: submitted, found, claimed once, fenced, ended."""

from dataclasses import replace
from datetime import datetime
from math import inf

import pytest
from sqlalchemy import select

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.errors import InvalidInput, NotFound
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.attempts.fence import LeaseLost
from backend.runs.history.listing import RunFilter
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.sample_specs import PictureSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, ProfileSpec, StopSpec, TrainSpec
from backend.runs.request.text_spec import TextSpec
from backend.runs.run import Run, RunError, RunProgress, RunSummary
from backend.runs.states import IllegalMove, RunState
from backend.services.runs.recovery import AGENT_LOST
from backend.services.runs.runs import NotLive
from backend.services.runs.stores import Stores
from backend.storage.tables.values import DatabaseClock, DatabaseMoment

PLAN = Plan("even", Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,)))), "pipedream", 8)


def train(definition: Definition, **changes) -> TrainSpec:
    return replace(TrainSpec(definition.id, PLAN), **changes)


def test_a_submitted_run_is_queued_and_comes_back_whole(backend: Backend, definition: Definition):
    spec = train(definition, target_accuracy=0.9, optimizer=OptimizerSpec("adam"))
    run = backend.runs.submit(spec, "my run")
    assert (run.name, run.state, run.attempt, run.error) == ("my run", RunState.QUEUED, 0, None)
    assert backend.runs.get(run.id) == run
    assert run.spec == spec


def test_a_run_begins_and_ends_by_the_databases_clock(backend: Backend, definition: Definition):
    def now() -> datetime:
        with backend.database.read() as session:
            moment, seconds = session.execute(select(DatabaseMoment(), DatabaseClock())).one()
        assert moment.timestamp() == pytest.approx(seconds, abs=0.5)
        return moment

    times = [now(), (run := backend.runs.submit(train(definition))).created_at, now()]
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    (told,), run = backend.runs.attempts(run.id), backend.runs.get(run.id)
    times += [run.started_at, told.started_at, told.finished_at, run.finished_at, now()]
    assert times == sorted(times)


def test_a_run_is_named_after_its_model(run: Run):
    assert run.name == "tiny profile"


def test_without_redis_a_run_stays_queued_and_says_so(backend: Backend, run: Run):
    assert list(backend.dispatch.waiting_for("here")) == [run.id]
    reason = backend.runs.why_waiting(run)
    assert reason is not None
    assert "Redis does not answer" in reason
    assert "stageflow up" in reason
    backend.runs.cancel(run.id)
    assert backend.runs.why_waiting(backend.runs.get(run.id)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"epochs": 0},
        {"optimizer": OptimizerSpec(learning_rate=0.0)},
        {"optimizer": OptimizerSpec(learning_rate=inf)},
        {"optimizer": OptimizerSpec(momentum=1.0)},
        {"target_accuracy": 1.5},
        {"target_loss": 0.0},
        {"target_loss": inf},
        {"target_loss": 0.3, "target_accuracy": 0.9},
        {"evaluate": -1},
        {"stop": StopSpec(patience=-1)},
        {"stop": StopSpec(updates=-1)},
        {"stop": StopSpec(seconds=inf)},
        {"stop": StopSpec(patience=3, metric="f1")},
        {"stop": StopSpec(patience=3, metric="loss", better="smaller")},
        {"data": DataSpec("nowhere")},
        {"data": DataSpec(samples=0)},
        {"data": DataSpec("csv")},
        {"data": DataSpec("digits", path="somewhere")},
        {"data": DataSpec("csv", path="a.csv", held_out=1.0)},
        {"data": DataSpec("csv", path="a.csv", buckets=(8, 4))},
        {"data": DataSpec("text", path="a.txt", length=-1)},
        {"data": DataSpec("text", path="a.txt", text=TextSpec(packing=True))},
        {"data": DataSpec("text", path="a.txt", length=0, text=TextSpec("words"))},
        {"data": DataSpec("numpy", path="a.npz", text=TextSpec("words"))},
        {"data": DataSpec("text", path="a.txt", text=TextSpec("words", masked=0))},
        {"data": DataSpec("text", path="a.txt", text=TextSpec("words", template="a" * 65537))},
        {"data": DataSpec("text", path="a.txt", text=TextSpec("words", "masked", answers=True))},
        {"data": DataSpec("digits", pictures=PictureSpec(erase=2.0))},
        {"weights_path": "base", "weights_id": 1},
        {"weights_partial": True},
        {"checkpoints": CheckpointSpec(keep=0)},
        {"checkpoints": CheckpointSpec(updates=-1)},
        {"checkpoints": CheckpointSpec(seconds=inf)},
        {"optimizer": OptimizerSpec(clip_by="stage")},
        {"optimizer": OptimizerSpec(warm_up=3.0), "epochs": 2},
        {"optimizer": OptimizerSpec(warm_up_updates=9), "stop": StopSpec(updates=8)},
        {"plan": replace(PLAN, schedule="nonsense")},
        {"plan": replace(PLAN, schedule="forward-only")},
        {"plan": replace(PLAN, microbatch=0)},
        {"plan": replace(PLAN, batch=0)},
    ],
)
def test_a_faulty_training_is_refused_and_not_stored(backend, definition, changes):
    with pytest.raises(InvalidInput) as caught:
        backend.runs.submit(train(definition, **changes))
    assert caught.value.advice
    assert backend.runs.list().total == 0


@pytest.mark.parametrize("changes", [{"microbatch": 0}, {"repetitions": 0}])
def test_a_faulty_profiling_is_refused(backend: Backend, definition: Definition, changes):
    with pytest.raises(InvalidInput, match="is 0"):
        backend.runs.submit(ProfileSpec(definition.id, **changes))


def test_an_unknown_definition_is_refused(backend: Backend):
    with pytest.raises(NotFound, match="no model 9"):
        backend.runs.submit(ProfileSpec(9))


def test_filters_meet_and_pages_are_newest_first(backend: Backend, definition: Definition):
    other = backend.definitions.add("other.py", b"def model(): ...\n")
    profile = backend.runs.submit(ProfileSpec(definition.id), "50% of a profile")
    training = backend.runs.submit(train(definition), "Training 1")
    foreign = backend.runs.submit(train(other), "training 2")
    backend.runs.cancel(foreign.id)

    def found(**wanted) -> list[int]:
        return [run.id for run in backend.runs.list(RunFilter(**wanted)).runs]

    assert found() == [foreign.id, training.id, profile.id]
    assert found(kind="train") == [foreign.id, training.id]
    assert found(text="TRAINING") == [foreign.id, training.id]
    assert found(text="%") == [profile.id]
    assert found(states=(RunState.CANCELLED,)) == [foreign.id]
    assert found(definition_id=definition.id, kind="train") == [training.id]
    page = backend.runs.list(limit=1, offset=1)
    assert ([run.id for run in page.runs], page.total) == ([training.id], 3)


def test_a_run_is_claimed_once(backend: Backend, run: Run):
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    assert (attempt.number, attempt.run.state, attempt.run.node) == (1, RunState.STARTING, "here")
    assert attempt.run.started_at is not None
    assert backend.dispatch.claim(run.id, "there") is None
    assert not backend.dispatch.waiting_for("here")


def test_a_run_that_is_not_there_cannot_be_claimed(backend: Backend):
    assert backend.dispatch.claim(99, "here") is None


def test_an_attempt_goes_through_its_states(backend: Backend, run: Run):
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    assert backend.runs.get(run.id).state is RunState.RUNNING
    attempt.progress(RunProgress("layers", 3, 9))
    assert backend.runs.get(run.id).progress == RunProgress("layers", 3, 9)
    summary = RunSummary(accuracy=0.5, epochs=2, profile_id=4)
    attempt.finish(RunState.SUCCEEDED, summary)
    ended = backend.runs.get(run.id)
    assert (ended.state, ended.summary, ended.error) == (RunState.SUCCEEDED, summary, None)
    assert ended.finished_at is not None


def test_an_error_is_kept_whatever_characters_it_has(backend: Backend, run: Run):
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    error = RunError("ModelRaised", "what\0is\udc80this", "mend it", "Traceback …")
    attempt.finish(RunState.FAILED, RunSummary(loss=float("nan")), error)
    ended = backend.runs.get(run.id)
    assert ended.error == replace(error, message="what\N{REPLACEMENT CHARACTER}is?this")
    assert ended.summary.loss is None


def test_a_move_against_the_rules_changes_nothing(backend: Backend, run: Run):
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    with pytest.raises(IllegalMove):
        attempt.finish(RunState.SUCCEEDED, RunSummary())
    assert backend.runs.get(run.id).state is RunState.STARTING


def test_a_queued_run_is_cancelled_at_once(backend: Backend, run: Run):
    cancelled = backend.runs.cancel(run.id)
    assert cancelled.state is RunState.CANCELLED
    assert cancelled.finished_at is not None
    assert backend.dispatch.claim(run.id, "here") is None


def test_the_ranks_of_live_runs_alone_show_their_stacks(backend: Backend, run: Run):
    with pytest.raises(NotLive, match=f"run {run.id} is queued"):
        backend.runs.show_stacks(run.id)
    assert backend.dispatch.claim(run.id, "here") is not None
    asked = [backend.runs.show_stacks(run.id).stacks_asked for _ in range(2)]
    assert asked == [1, 2]


def test_a_live_run_is_asked_to_end(backend: Backend, run: Run):
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    assert attempt.beat() is False
    assert backend.runs.cancel(run.id).state is RunState.STARTING
    assert attempt.beat() is True


def test_an_ended_run_stays_what_it_is(backend: Backend, run: Run):
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.finish(RunState.FAILED, RunSummary(), RunError("X", "y"))
    ended = backend.runs.get(run.id)
    assert backend.runs.cancel(run.id) == ended


def test_a_run_whose_lease_is_over_is_failed_and_fenced(
    backend: Backend, stores: Stores, definition: Definition
):
    lost, held = (backend.runs.submit(ProfileSpec(definition.id)) for _ in range(2))
    attempt = backend.dispatch.claim(lost.id, "here")
    assert attempt is not None
    assert backend.dispatch.claim(held.id, "here") is not None
    assert not backend.dispatch.expire()
    stores.runs.beat(attempt.fence, lease=-1.0)
    assert list(backend.dispatch.expire()) == [lost.id]
    assert backend.runs.get(lost.id).error == AGENT_LOST
    assert backend.runs.get(held.id).state is RunState.STARTING
    with pytest.raises(LeaseLost):
        attempt.beat()
