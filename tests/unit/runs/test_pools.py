"""Which runs that wait for a pool get a job, and when a job is needed no longer."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.pools.agents import agents_of
from backend.runs.pools.job import JobState
from backend.runs.pools.pool import (
    AHEAD,
    RETRY,
    PoolJob,
    fewest_devices,
    is_needed,
    next_ones,
    order_for,
    tries,
)
from backend.runs.request.spec import PoolSpec, ProfileSpec, TrainSpec
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPEN = (JobState.SUBMITTING, JobState.WAITING, JobState.HELD)


def a_run(run_id: int, state: RunState = RunState.QUEUED, attempt: int = 0) -> Run:
    spec = ProfileSpec(1, pool=PoolSpec("gpu"))
    started = None, None, None, RunSummary(), None, False
    return Run(run_id, "", spec, state, attempt, None, NOW, *started)


def a_job(run_id: int, number: int = 1, attempt: int = 1, **others) -> PoolJob:
    state = others.pop("state", JobState.WAITING)
    return PoolJob(run_id, number, attempt, "gpu", state, NOW, **others)


@pytest.mark.parametrize(
    ("state", "attempt", "needed"),
    [
        (RunState.QUEUED, 0, True),  # it has not begun
        (RunState.STARTING, 1, True),  # it carries the run
        (RunState.RUNNING, 1, True),
        (RunState.QUEUED, 1, False),  # its attempt is over, another job is for the next
        (RunState.RUNNING, 2, False),  # others carry the run
        (RunState.SUCCEEDED, 1, False),
        (RunState.CANCELLED, 0, False),
    ],
)
def test_a_job_is_needed_while_its_attempt_may_begin_or_goes_on(state, attempt, needed) -> None:
    assert is_needed(a_job(1), a_run(1, state, attempt)) is needed


@given(
    st.lists(st.integers(0, 3), max_size=12),
    st.lists(st.sampled_from((*OPEN, JobState.RUNNING)), max_size=8),
)
def test_few_jobs_wait_at_once_and_the_first_runs_get_them(ages, others) -> None:
    """`ages`: for each run of the queue, 0 = no job yet, 1 = one that waits, 2 = one that ended a
    moment ago, 3 = one that ended long ago."""
    queue = [a_run(number) for number in range(1, len(ages) + 1)]
    jobs = {}
    for run, age in zip(queue, ages, strict=True):
        ended = NOW - (RETRY * 2 if age == 3 else timedelta(0))
        gone = {"state": JobState.GONE, "ended_at": ended} if age > 1 else {}
        jobs[run.id] = [a_job(run.id, **gone)] if age else []
    jobs |= {100 + n: [a_job(100 + n, state=state)] for n, state in enumerate(others)}
    chosen = next_ones(queue, jobs, NOW)
    waiting = ages.count(1) + sum(state in OPEN for state in others)
    may = [run for run, age in zip(queue, ages, strict=True) if age in (0, 3)]
    assert chosen == may[: max(0, AHEAD - waiting)]


def test_what_counts_as_a_try_is_a_job_of_that_attempt_that_is_gone() -> None:
    gone = {"state": JobState.GONE, "ended_at": NOW}
    jobs = [a_job(1, 1, 1, **gone), a_job(1, 2, 2, **gone), a_job(1, 3, 2, **gone), a_job(1, 4, 2)]
    assert [tries(jobs, attempt) for attempt in (1, 2, 3)] == [1, 2, 0]


def training(*devices: int, pipelines: int = 1, **pool) -> TrainSpec:
    stages = tuple(Stage(n, n + 1, (device,)) for n, device in enumerate(devices))
    plan = Plan("", Partition(stages), "pipedream", 4, num_pipelines=pipelines)
    return TrainSpec(1, plan, pool=PoolSpec("gpu", **pool))


@pytest.mark.parametrize(
    ("spec", "devices"),
    [
        (ProfileSpec(1, pool=PoolSpec("gpu")), 1),
        (training(0, 1, 2), 3),
        (training(0, 1, 2, nodes=2), 2),
        (training(0, 1, 5, nodes=2), 3),  # numbered through: 3 on each machine
        (training(0, 1, pipelines=2), 4),
    ],
)
def test_the_fewest_devices_of_each_machine(spec, devices) -> None:
    assert fewest_devices(spec) == devices
    order = order_for(a_job(7, 2), spec, ("carry", "7"))
    assert (order.name, order.run_id, order.devices) == ("stageflow-gpu-7-2", 7, devices)
    assert order.nodes == spec.pool.nodes
    asked = replace(spec, pool=replace(spec.pool, devices=8, seconds=60.0))
    assert order_for(a_job(7), asked, ()).devices == 8
    assert order_for(a_job(7), asked, ()).seconds == 60.0


@pytest.mark.parametrize(("seconds", "warning"), [(0, 120), (3600, 120), (240, 120), (60, 30)])
def test_a_short_job_is_warned_when_half_its_time_is_over(seconds: float, warning: float) -> None:
    spec = training(0, seconds=seconds)
    assert order_for(a_job(7), spec, ()).warning == warning


def test_agents_are_named_after_the_run_and_their_place() -> None:
    assert agents_of(12, training(0, 1, nodes=2)) == ("run-12.0", "run-12.1")
    assert agents_of(12, ProfileSpec(1)) == ()
