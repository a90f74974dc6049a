"""A free node takes the place of one that was lost: of a member, and of the one that leads."""

from dataclasses import replace

import pytest

from backend.runs.request.spec import CheckpointSpec, TrainSpec
from backend.runs.states import RunState
from tests.integration.hosts.slow_training import curve, newest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

LEASE = 12
"""Seconds, after which a leader that was lost is given up."""


@pytest.fixture(scope="module")
def hosts(new_hosts):
    """Three that know only their own files, and "host-2", which sees those of "host-0"."""
    hosts = new_hosts(4, LEASE)
    hosts.share_files("host-2")
    hosts.start()
    return hosts


@pytest.mark.parametrize("lost", ["host-1", "host-0"])
def test_a_free_node_stands_in_and_no_step_is_lost(hosts, spec: TrainSpec, undisturbed, lost: str):
    run = hosts.backend.runs.submit(replace(spec, checkpoints=CheckpointSpec(seconds=1)))
    hosts.wait(lambda: hosts.backend.runs.checkpoints.list(run.id))
    step = newest(hosts, run.id)
    hosts.kill(lost)
    ended = hosts.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, (ended.error, hosts.logs())
    assert curve(hosts, run.id) == undisturbed
    attempts = hosts.backend.runs.attempts(run.id)
    assert attempts[0].node == "host-0"
    assert attempts[-1].step >= step
    assert attempts[-1].node == ("host-2" if lost == "host-0" else "host-0")
    hosts.begin(lost)
    hosts.wait(lambda: lost in hosts.alive)
