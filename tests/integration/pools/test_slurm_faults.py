"""The faults of agents (docs/guide/reliability.md), once each, in jobs of a real Slurm."""

import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

import psutil
import pytest

from backend.runs.request.spec import CheckpointSpec
from backend.runs.states import RunState
from tests.integration.pools.conftest import Losses, in_slurm
from tests.integration.pools.rig import PoolRig, power_off
from tests.slurm import Slurm

LEASE = 15.0
"""Seconds. It outlasts what a machine that is full of other work takes from an agent."""
UPDATES = 200
PAUSE = 0.05
"""Seconds per microbatch: no agent that misses its database trains to the end within a lease."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def leader(rig: PoolRig, run_id: int) -> psutil.Process:
    """The agent that carries the run now."""
    job = rig.jobs(run_id)[-1].engine_id
    (agent,) = [a for a in rig.agents(run_id) if a.environ()["SLURM_JOB_ID"] == job]
    return agent


def kill_rank(rig: PoolRig, run_id: int) -> None:
    """Of the agent's descendants, ranks have no children of their own."""
    ranks = [p for p in leader(rig, run_id).children(recursive=True) if not p.children()]
    ranks[-1].kill()


def kill_agent(rig: PoolRig, run_id: int) -> None:
    leader(rig, run_id).kill()


def lose_machine(rig: PoolRig, run_id: int) -> None:
    power_off(leader(rig, run_id))


def take_database_away(rig: PoolRig, run_id: int) -> None:
    """For longer than a lease, from the agent and from who submits."""
    rig.halt()
    with closing(sqlite3.connect(rig.settings.sqlite_file, timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        time.sleep(LEASE + 2)
    rig.begin()


def pause(rig: PoolRig, run_id: int) -> None:
    """Between its writes: one moment in ten is in the middle of one, when nobody else can write."""
    agent = leader(rig, run_id)
    agent.send_signal(signal.SIGSTOP)
    while not can_write(rig):
        agent.send_signal(signal.SIGCONT)
        time.sleep(0.1)
        agent.send_signal(signal.SIGSTOP)


def can_write(rig: PoolRig) -> bool:
    with closing(sqlite3.connect(rig.settings.sqlite_file, timeout=3)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
    return True


FAULTS = (kill_rank, kill_agent, lose_machine, take_database_away, pause)


def test_each_fault_of_an_agent_is_followed_by_another_job(
    new_pool: Callable[..., PoolRig], slurm: Slurm, undisturbed: Callable[..., Losses]
) -> None:
    """One run meets them all. Who is paused is woken and ended with its job, as nobody needs it;
    the run is somebody else's by then."""
    rig = new_pool(in_slurm, lease=LEASE)
    rig.begin()
    run = rig.submit(rig.training(1, UPDATES, (PAUSE,), checkpoints=CheckpointSpec(updates=10)))
    kept = 0
    for attempt, strike in enumerate(FAULTS, start=1):
        rig.goes_on(run.id, attempt)
        rig.wait(lambda: newest(rig, run.id) > kept)  # noqa: B023 - it is waited for here
        kept = newest(rig, run.id)
        strike(rig, run.id)
    ended = rig.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    attempts = rig.backend.runs.attempts(run.id)
    assert [attempt.number for attempt in attempts] == list(range(1, len(FAULTS) + 2))
    assert [attempt.outcome for attempt in attempts if attempt.step is None][1:] == []
    assert attempts[-1].outcome == "succeeded"
    begun = [job.attempt for job in rig.jobs(run.id)]
    assert begun == sorted(begun)  # a job whose agent comes too late for its lease has a successor
    assert sorted(set(begun)) == list(range(1, len(FAULTS) + 2))
    rig.wait(lambda: not rig.agents())
    assert rig.curve(run.id) == undisturbed(UPDATES)


def newest(rig: PoolRig, run_id: int) -> int:
    """Of the run's checkpoints, by its step."""
    return max((kept.mark.step for kept in rig.backend.runs.checkpoints.list(run_id)), default=0)
