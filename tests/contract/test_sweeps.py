"""Sweeps, on both databases: all of their runs or none, in the queue, ended early, cancelled."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from backend.bootstrap import Backend
from backend.errors import InvalidInput
from backend.people.project import Quota, QuotaReached
from backend.runs.events import HELD_OUT_LOSS, Metrics
from backend.runs.request.spec import TrainSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from backend.runs.sweeps.axes import read_axis
from backend.runs.sweeps.sweep import Early, SweepAxis, SweepSpec
from backend.services.runs.attempt import Attempt
from backend.services.runs.sweeps import CANCELLED
from backend.storage.runs import sweeps as stored
from tests.app.seed import a_profile, plan_for

SOURCE = b"def model():\n    return None\n"


@pytest.fixture
def base(backend: Backend) -> TrainSpec:
    definition = backend.definitions.add("net.py", SOURCE)
    plan = plan_for(backend, backend.profiles.add(a_profile(), definition.id))
    return TrainSpec(definition.id, plan.plan, plan.id, target_accuracy=0.9)


def rates(base: TrainSpec, count: int, **early: Any) -> SweepSpec:
    axis = SweepAxis("lr", tuple(0.1 / n for n in range(1, count + 1)))
    return SweepSpec(base, (axis,), early=Early(**early))


def carried(backend: Backend, run_id: int, losses: Sequence[float]) -> Attempt:
    attempt = backend.dispatch.claim(run_id, "here")
    assert attempt is not None
    attempt.running()
    steps = tuple(range(len(losses)))
    times = tuple(map(float, steps))
    attempt.metrics(Metrics(HELD_OUT_LOSS, steps, tuple(losses), times, 0))
    return attempt


def test_all_runs_of_a_sweep_wait_in_the_queue(backend: Backend, base: TrainSpec) -> None:
    axes = tuple(map(read_axis, ("lr=0.1,0.01", "schedule=pipedream,gpipe", "microbatch=16,32")))
    sweep = backend.sweeps.start(SweepSpec(base, axes), " the first ")
    assert (sweep.name, len(sweep.runs), sweep.is_open) == ("the first", 8, False)
    runs = [backend.runs.get(number) for number in sweep.run_ids]
    assert {run.state for run in runs} == {RunState.QUEUED}
    assert [run.name for run in runs] == [f"the first {n}" for n in range(1, 9)]
    for each, run in zip(sweep.runs, runs, strict=True):
        assert isinstance(run.spec, TrainSpec)
        plan = run.spec.plan
        found = (run.spec.optimizer.learning_rate, plan.schedule, plan.microbatch)
        assert found == tuple(each.values.values())
        assert backend.sweeps.of_run(run.id) == sweep.id
    (listed,) = backend.sweeps.list()
    assert listed == backend.sweeps.get(sweep.id)
    assert (listed.sweep, listed.num_ended, listed.seconds_left) == (sweep, 0, None)
    backend.runs.delete(backend.runs.cancel(runs[0].id).id)
    gone = backend.sweeps.get(sweep.id).results[0]
    assert (gone.run_id, gone.state, gone.values["lr"]) == (None, None, 0.1)


def test_a_run_that_cannot_be_is_named_and_nothing_is_stored(
    backend: Backend, base: TrainSpec
) -> None:
    axes = tuple(map(read_axis, ("seed=1,2", "lr=0.1,-1")))
    with pytest.raises(InvalidInput, match="seed 1, lr -1: learning rate -1 is not above 0"):
        backend.sweeps.start(SweepSpec(base, axes))
    cases = {"it is not known": Early(median=True, metric="f1"), "no run can": Early(first=True)}
    for said, early in cases.items():
        spec = SweepSpec(replace(base, target_accuracy=None), axes, early=early)
        with pytest.raises(InvalidInput, match=said):
            backend.sweeps.start(spec)
    backend.projects.limit(1, Quota(queued=3))
    with pytest.raises(QuotaReached, match="3 runs"):
        backend.sweeps.start(rates(base, 4))
    assert backend.runs.list().total == 0
    assert backend.sweeps.list() == []


def test_a_server_that_dies_in_the_middle_leaves_nothing_or_all(
    backend: Backend, base: TrainSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is there when it comes back is whole; asked again, no run is there twice."""
    made = []

    def dying(*given: Any) -> Any:
        if len(made) == 3:
            raise KeyboardInterrupt
        made.append(stored_added(*given))
        return made[-1]

    stored_added = stored.added
    monkeypatch.setattr(stored, "added", dying)
    with pytest.raises(KeyboardInterrupt):
        backend.sweeps.start(rates(base, 5))
    assert backend.runs.list().total == 0
    monkeypatch.undo()
    backend.sweeps.start(rates(base, 5))
    assert backend.runs.list().total == 5


def test_the_others_end_once_one_has_reached_the_target(backend: Backend, base: TrainSpec) -> None:
    sweep = backend.sweeps.start(rates(base, 4, first=True))
    first, live, *waiting = sweep.run_ids
    attempt, other = carried(backend, first, [0.5]), carried(backend, live, [0.7])
    backend.dispatch.expire()
    assert not other.beat()
    attempt.finish(RunState.SUCCEEDED, RunSummary(accuracy=0.95, seconds_to_target=3.0))
    for _ in range(2):  # twice is as once
        backend.dispatch.expire()
        assert other.beat()
        assert {backend.runs.get(number).state for number in waiting} == {RunState.CANCELLED}
    said = backend.sweeps.get(sweep.id)
    assert [each.ended for each in said.results] == ["", *[f"run {first} reached the target"] * 3]
    assert said.sweep.is_open
    other.finish(RunState.CANCELLED, RunSummary())
    backend.dispatch.expire()
    said = backend.sweeps.get(sweep.id)
    assert (said.sweep.is_open, said.num_ended, said.seconds_left) == (False, 4, 0.0)


def test_who_falls_behind_the_median_ends(backend: Backend, base: TrainSpec) -> None:
    sweep = backend.sweeps.start(rates(base, 6, median=True, grace=2))
    for number in sweep.run_ids[:3]:
        attempt = carried(backend, number, [1.0, 0.5])
        attempt.finish(RunState.SUCCEEDED, RunSummary(metrics={HELD_OUT_LOSS: 0.5}))
    slow = carried(backend, sweep.run_ids[3], [2.0, 1.5])
    fast = carried(backend, sweep.run_ids[4], [2.0, 0.1])
    backend.dispatch.expire()
    assert slow.beat()
    assert not fast.beat()
    assert backend.runs.get(sweep.run_ids[5]).state is RunState.QUEUED
    said = backend.sweeps.get(sweep.id)
    assert "its best is 1.5, the median of 3 runs 0.75" in said.results[3].ended
    assert (said.best, said.results[4].metric) == (5, 0.1)
    assert (said.num_ended, said.num_live) == (3, 2)
    assert said.seconds_left is not None


def test_a_sweep_is_cancelled_as_one(backend: Backend, base: TrainSpec) -> None:
    sweep = backend.sweeps.start(rates(base, 4, first=True))
    done, live, *waiting = sweep.run_ids
    carried(backend, done, [0.5]).finish(RunState.SUCCEEDED, RunSummary())
    attempt = carried(backend, live, [0.5])
    said = backend.sweeps.cancel(sweep.id)
    assert attempt.beat()
    assert {backend.runs.get(number).state for number in waiting} == {RunState.CANCELLED}
    assert [each.ended for each in said.results] == ["", *[CANCELLED] * 3]
    assert not said.sweep.is_open
    assert backend.runs.get(done).state is RunState.SUCCEEDED
