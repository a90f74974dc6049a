"""Checkpoints of two hosts in the middle of an epoch, and what goes on from them."""

from dataclasses import replace

import pytest

from backend.planning.plan import Partition, Stage
from backend.runs.request.spec import CheckpointSpec, TrainSpec
from backend.runs.states import RunState
from tests.integration.hosts.slow_training import UPDATES, curve, newest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def hosts(new_hosts):
    hosts = new_hosts(2)
    hosts.start()
    return hosts


@pytest.fixture(scope="module")
def shared(hosts, spec: TrainSpec):
    """One stage on both hosts, which keep half of the optimizer's state each; and its losses where
    nothing happens to it."""
    devices = tuple(stage.devices[0] for stage in spec.plan.partition.stages)
    partition = Partition((Stage(0, spec.plan.partition.stages[-1].stop, devices),))
    found = replace(spec, plan=replace(spec.plan, partition=partition, shard_state=True))
    run = hosts.finished(found)
    assert run.state is RunState.SUCCEEDED, (run.error, hosts.logs())
    return found, curve(hosts, run.id)


def test_a_cancelled_run_keeps_what_it_had_and_is_resumed(hosts, spec: TrainSpec, undisturbed):
    cancelled_and_resumed(hosts, spec, undisturbed)


def test_state_that_hosts_share_goes_on_from_the_files_of_both(hosts, shared):
    cancelled_and_resumed(hosts, *shared)


def cancelled_and_resumed(hosts, spec: TrainSpec, undisturbed) -> None:
    run = hosts.backend.runs.submit(spec)
    hosts.wait(lambda: len(curve(hosts, run.id)) > UPDATES // 4)
    hosts.backend.runs.cancel(run.id)
    assert hosts.until_final(run.id).state is RunState.CANCELLED
    hosts.wait(lambda: not hosts.ranks_of(run.id))
    step = newest(hosts, run.id)
    resumed = hosts.until_final(hosts.backend.runs.resume(run.id).id)
    assert resumed.state is RunState.SUCCEEDED, (resumed.error, hosts.logs())
    assert curve(hosts, resumed.id) == undisturbed
    assert hosts.backend.runs.attempts(resumed.id)[0].step == step


def test_a_node_that_is_lost_is_waited_for_and_costs_no_step(hosts, spec: TrainSpec, undisturbed):
    run = hosts.backend.runs.submit(replace(spec, checkpoints=CheckpointSpec(seconds=1)))
    hosts.wait(lambda: hosts.backend.runs.checkpoints.list(run.id))
    step = newest(hosts, run.id)
    hosts.kill("host-1")
    hosts.wait(lambda: hosts.backend.runs.get(run.id).state is RunState.QUEUED)
    hosts.wait(lambda: not hosts.ranks_of(run.id))
    assert "host-1 is not alive" in hosts.backend.runs.why_waiting(hosts.backend.runs.get(run.id))
    hosts.begin("host-1")
    ended = hosts.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, (ended.error, hosts.logs())
    assert curve(hosts, run.id) == undisturbed
    first, *_, last = hosts.backend.runs.attempts(run.id)
    assert (first.outcome, first.error.kind) == ("restarted", "NodeLost")
    assert "host-1" in first.error.message
    assert last.step >= step
