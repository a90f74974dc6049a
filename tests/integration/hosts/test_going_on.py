"""Checkpoints of two hosts in the middle of an epoch, and what goes on from them."""

from dataclasses import replace

import pytest

from backend.runs.spec import CheckpointSpec, TrainSpec
from backend.runs.states import RunState
from tests.integration.hosts.slow_training import UPDATES, curve, newest, training

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def two(new_hosts):
    hosts = new_hosts(2)
    hosts.start()
    return hosts


@pytest.fixture(scope="module")
def spec(two) -> TrainSpec:
    return training(two)


@pytest.fixture(scope="module")
def undisturbed(two, spec: TrainSpec) -> list[tuple[int, float]]:
    run = two.finished(spec)
    assert run.state is RunState.SUCCEEDED, (run.error, two.logs())
    return curve(two, run.id)


def test_a_cancelled_run_keeps_what_it_had_and_is_resumed(two, spec: TrainSpec, undisturbed):
    run = two.backend.runs.submit(spec)
    two.wait(lambda: len(curve(two, run.id)) > UPDATES // 4)
    two.backend.runs.cancel(run.id)
    assert two.until_final(run.id).state is RunState.CANCELLED
    two.wait(lambda: not two.ranks_of(run.id))
    step = newest(two, run.id)
    resumed = two.until_final(two.backend.runs.resume(run.id).id)
    assert resumed.state is RunState.SUCCEEDED, (resumed.error, two.logs())
    assert curve(two, resumed.id) == undisturbed
    assert two.backend.runs.attempts(resumed.id)[0].step == step


def test_a_node_that_is_lost_is_waited_for_and_costs_no_step(two, spec: TrainSpec, undisturbed):
    run = two.backend.runs.submit(replace(spec, checkpoints=CheckpointSpec(seconds=1)))
    two.wait(lambda: two.backend.runs.checkpoints(run.id))
    step = newest(two, run.id)
    two.kill("host-1")
    two.wait(lambda: two.backend.runs.get(run.id).state is RunState.QUEUED)
    two.wait(lambda: not two.ranks_of(run.id))
    assert "host-1 not alive" in two.backend.runs.why_waiting(two.backend.runs.get(run.id))
    two.begin("host-1")
    ended = two.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, (ended.error, two.logs())
    assert curve(two, run.id) == undisturbed
    first, *_, last = two.backend.runs.attempts(run.id)
    assert (first.outcome, first.error.kind) == ("restarted", "NodeLost")
    assert "host-1" in first.error.message
    assert last.step >= step
