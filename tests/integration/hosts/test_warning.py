"""A cluster's scheduler warns every process of a run on two hosts that its time is over soon."""

import signal
from dataclasses import replace

import pytest

from backend.runs.request.spec import CheckpointSpec, TrainSpec
from backend.runs.states import RunState
from tests.integration.hosts.slow_training import UPDATES, curve, newest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

AGENT = "tests.integration.agent.warned_agent"


@pytest.fixture(scope="module")
def hosts(new_hosts):
    hosts = new_hosts(2)
    hosts.start(AGENT)
    return hosts


def waits_again(hosts, run_id: int) -> None:
    hosts.wait(lambda: hosts.backend.runs.get(run_id).state is not RunState.RUNNING)
    run = hosts.backend.runs.get(run_id)
    assert run.state is RunState.QUEUED, run.error


def test_the_leader_saves_and_the_run_goes_on_from_there(hosts, spec: TrainSpec, undisturbed):
    """The member is warned first: were it to obey, its ranks would end in the leader's sight."""
    run = hosts.backend.runs.submit(replace(spec, checkpoints=CheckpointSpec(seconds=0)))
    hosts.wait(lambda: len(curve(hosts, run.id)) > UPDATES // 4)
    assert not hosts.backend.runs.checkpoints.list(run.id)
    for name in reversed(hosts.names):
        hosts.tell(name, signal.SIGUSR1)
    waits_again(hosts, run.id)
    assert [hosts.left(name) for name in hosts.names] == [0, 0]
    assert not hosts.ranks_of(run.id)
    step = newest(hosts, run.id)
    first = hosts.backend.runs.attempts(run.id)[0]
    assert (first.outcome, first.error.kind) == ("restarted", "AgentWarned")
    hosts.start(AGENT)
    ended = hosts.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, (ended.error, hosts.logs())
    assert curve(hosts, run.id) == undisturbed
    assert hosts.backend.runs.attempts(run.id)[-1].step == step


def test_without_a_warning_the_run_goes_on_from_its_last_checkpoint(
    hosts, spec: TrainSpec, undisturbed
):
    """Agents and ranks get SIGTERM at once: whichever end is seen first, it is no fault of the
    run's own."""
    run = hosts.backend.runs.submit(replace(spec, checkpoints=CheckpointSpec(seconds=1)))
    hosts.wait(lambda: hosts.backend.runs.checkpoints.list(run.id))
    for name in reversed(hosts.names):
        hosts.tell(name, signal.SIGTERM)
    waits_again(hosts, run.id)
    assert [hosts.left(name) for name in hosts.names] == [0, 0]
    hosts.start(AGENT)
    ended = hosts.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, (ended.error, hosts.logs())
    assert curve(hosts, run.id) == undisturbed
