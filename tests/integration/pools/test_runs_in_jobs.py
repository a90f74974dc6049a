"""Runs that jobs carry: equal to those of a node's agent, whatever becomes of the jobs."""

import signal
from collections.abc import Callable
from datetime import timedelta

import pytest

from backend.links.link_test import LinkState
from backend.runs.pools.job import JobState
from backend.runs.request.spec import CheckpointSpec, PoolSpec, ProfileSpec
from backend.runs.states import RunState
from tests.integration.pools.conftest import Losses
from tests.integration.pools.rig import PAUSE, SLOWLY, UPDATES, PoolRig, power_off

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture
def rig(new_pool) -> PoolRig:
    rig = new_pool()
    rig.begin()
    return rig


def test_jobs_of_one_and_two_machines_learn_what_a_node_learns(
    new_pool: Callable[..., PoolRig], undisturbed: Callable[..., Losses]
) -> None:
    """The lease outlasts any load of this machine: a job that comes too late has a successor."""
    rig = new_pool(lease=30)
    rig.begin()
    one, two = (rig.submit(rig.training(machines)) for machines in (1, 2))
    ended = [rig.until_final(run.id) for run in (one, two)]
    assert [run.state for run in ended] == [RunState.SUCCEEDED] * 2, [run.error for run in ended]
    assert rig.curve(one.id) == rig.curve(two.id) == undisturbed()
    (job,) = rig.jobs(two.id)
    assert job.hosts == ("local-0", "local-1")
    rig.wait(lambda: all(job.is_over for run in (one, two) for job in rig.jobs(run.id)))
    assert not rig.agents()
    assert rig.backend.nodes.list() == []


def test_a_profile_is_measured_in_a_job_of_one_device(rig: PoolRig) -> None:
    definition = rig.training(1).definition_id
    run = rig.submit(ProfileSpec(definition, 4, 2, pool=PoolSpec("gpu")))
    ended = rig.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    assert ended.summary.profile_id is not None
    assert rig.backend.profiles.get(ended.summary.profile_id).profile.layers


def test_links_of_its_machines_are_measured_by_a_job(rig: PoolRig) -> None:
    asked = rig.backend.links.ask_pool(rig.pool())
    rig.wait(lambda: rig.backend.links.tests.get(asked.id).state.is_final)
    found = rig.backend.links.tests.get(asked.id)
    assert found.state is LinkState.DONE, found.error
    assert [member.node for member in found.members] == ["gpu, machine 0", "gpu, machine 1"]
    ends = {(link.one, link.other) for link in found.links}
    assert ends == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert [level.count for level in found.cluster().levels] == [2, 2]
    rig.wait(lambda: not rig.agents())


def test_links_whose_job_cannot_begin_are_said_to_be_unmeasured(new_pool) -> None:
    rig = new_pool()
    rig.command = ("sh", "-c", "echo no Python on this machine; exit 3", "--")
    rig.begin()
    asked = rig.backend.links.ask_pool(rig.pool())
    rig.wait(lambda: rig.backend.links.tests.get(asked.id).state is LinkState.FAILED)
    assert "no Python on this machine" in rig.backend.links.tests.get(asked.id).error


def test_a_warned_job_saves_and_the_next_one_goes_on(
    rig: PoolRig, undisturbed: Callable[..., Losses]
) -> None:
    """As at the end of a job's time: a chain of jobs carries a run of any length."""
    run = rig.submit(rig.training(2, pauses=(SLOWLY, PAUSE)))
    rig.wait(lambda: len(rig.curve(run.id)) > UPDATES // 4)
    for agent in rig.agents(run.id):
        agent.send_signal(signal.SIGUSR1)
    ended = rig.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    first, second = rig.backend.runs.attempts(run.id)
    assert (first.outcome, first.error.kind) == ("restarted", "AgentWarned")
    assert second.step is not None
    assert [job.attempt for job in rig.jobs(run.id)] == [1, 2]
    assert rig.curve(run.id) == undisturbed()


def test_a_job_that_ends_before_there_is_anything_to_keep_is_followed_by_another(
    rig: PoolRig,
) -> None:
    run = rig.submit(rig.training(1))
    rig.wait(lambda: rig.backend.runs.get(run.id).state.is_live)
    for agent in rig.agents(run.id):
        agent.send_signal(signal.SIGTERM)
    ended = rig.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    assert [job.attempt for job in rig.jobs(run.id)] == [1, 2]
    assert len(rig.curve(run.id)) == UPDATES


def test_a_job_that_is_killed_is_followed_by_another(
    rig: PoolRig, undisturbed: Callable[..., Losses]
) -> None:
    """A machine of the job loses its power: agents and ranks are gone without a word."""
    checkpoints = CheckpointSpec(updates=10)
    run = rig.submit(rig.training(2, pauses=(SLOWLY, PAUSE), checkpoints=checkpoints))
    rig.wait(lambda: rig.backend.runs.checkpoints.list(run.id))
    for agent in rig.agents(run.id):
        power_off(agent)
    ended = rig.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    assert [job.attempt for job in rig.jobs(run.id)] == [1, 2]
    assert rig.curve(run.id) == undisturbed()


def test_a_cancelled_run_leaves_no_job(rig: PoolRig) -> None:
    """A job that waits is taken away; one that runs is ended by its agents."""
    running = rig.submit(rig.training(2, pauses=(SLOWLY,)))
    rig.wait(lambda: len(rig.curve(running.id)) > 3)
    waiting = rig.submit(rig.training(2, pool=PoolSpec("gpu", 2, devices=2)))
    rig.wait(lambda: [job.state for job in rig.jobs(waiting.id)] == [JobState.WAITING])
    for run in (waiting, running):
        rig.backend.runs.cancel(run.id)
    rig.wait(lambda: not rig.agents())
    for run in (waiting, running):
        assert rig.until_final(run.id).state is RunState.CANCELLED
        rig.wait(lambda run=run: all(job.is_over for job in rig.jobs(run.id)))
    assert rig.agents(waiting.id) == []


def test_who_submits_may_be_another_process_after_any_step(new_pool) -> None:
    """One writes a job down, another submits it, and a third follows it."""
    rig = new_pool()
    rig.backend.pools.beat("gpu", "test", rig.engine.room())
    run = rig.submit(rig.training(1))
    ((job, _),) = rig.backend.pools.begin("gpu")
    rig.begin()
    rig.wait(lambda: len(rig.curve(run.id)) > 3)
    rig.halt()
    rig.begin()
    assert rig.until_final(run.id).state is RunState.SUCCEEDED
    assert [each.number for each in rig.jobs(run.id)] == [job.number]


def test_a_job_whose_machine_cannot_start_an_agent_fails_its_run(new_pool, monkeypatch) -> None:
    monkeypatch.setattr("backend.runs.pools.pool.RETRY", timedelta(0))
    rig = new_pool()
    rig.command = ("sh", "-c", "echo no Python on this machine; exit 3", "--")
    rig.begin()
    run = rig.submit(rig.training(1))
    ended = rig.until_final(run.id)
    assert ended.state is RunState.FAILED
    assert ended.error is not None
    assert ended.error.kind == "JobFailed"
    assert "no Python on this machine" in ended.error.detail
