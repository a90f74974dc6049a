"""Runs that jobs of a real Slurm carry, whatever becomes of these: with agents as they are."""

from collections.abc import Callable

import pytest

from backend.runs.pools.job import JobOrder
from backend.runs.request.spec import CheckpointSpec
from backend.runs.states import RunState
from tests.integration.pools.conftest import Losses, in_slurm
from tests.integration.pools.rig import PAUSE, SLOWLY, PoolRig, power_off
from tests.slurm import Slurm
from workers.pools.slurm.engine import SlurmEngine

UPDATES = 200
"""However fast the machine, the run is still there when something happens to its second job."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_a_run_goes_on_in_other_jobs_when_it_is_warned_and_when_it_is_preempted(
    slurm_rig: PoolRig, slurm: Slurm, undisturbed: Callable[..., Losses]
) -> None:
    """The warning leaves time to save. Preemption here tells the ranks too, who end at once."""
    rig = slurm_rig
    run = rig.submit(rig.training(2, UPDATES, (SLOWLY, SLOWLY, PAUSE)))
    rig.goes_on(run.id, 1)
    slurm.command("scancel", "--signal=USR1", rig.jobs(run.id)[0].engine_id)
    rig.goes_on(run.id, 2)
    urgent = SlurmEngine("urgent", rig.settings.home, {})
    urgent.submit(JobOrder("urgent", 0, 4, 4, ("sleep", "1")))
    ended = rig.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    attempts = rig.backend.runs.attempts(run.id)
    assert [attempt.outcome for attempt in attempts] == ["restarted", "restarted", "succeeded"]
    assert attempts[0].error.kind == "AgentWarned"
    assert attempts[1].step is not None
    assert [job.attempt for job in rig.jobs(run.id)] == [1, 2, 3]
    assert rig.curve(run.id) == undisturbed(UPDATES)


def test_a_run_outlives_its_job_and_a_machine(
    new_pool: Callable[..., PoolRig], slurm: Slurm, undisturbed: Callable[..., Losses]
) -> None:
    """Somebody kills the job, and then a machine is lost."""
    rig = new_pool(in_slurm, lease=6)
    rig.begin()
    kept = CheckpointSpec(updates=20)
    run = rig.submit(rig.training(2, UPDATES, (SLOWLY, SLOWLY, PAUSE), checkpoints=kept))
    rig.goes_on(run.id, 1)
    slurm.command("scancel", rig.jobs(run.id)[0].engine_id)
    rig.goes_on(run.id, 2)
    (member,) = [agent for agent in rig.agents(run.id) if agent.environ()["SLURM_PROCID"] == "1"]
    power_off(member)
    ended = rig.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    outcomes = [attempt.outcome for attempt in rig.backend.runs.attempts(run.id)]
    assert outcomes == ["restarted", "restarted", "succeeded"]
    assert rig.curve(run.id) == undisturbed(UPDATES)


def test_a_chain_of_jobs_carries_a_run_past_the_time_of_one(
    slurm_rig: PoolRig, slurm: Slurm, undisturbed: Callable[..., Losses]
) -> None:
    """The partition's limit strikes: Slurm, which looks at it twice a minute, times the job out
    by itself. Only its end is brought forward, or the test would take the limit's minutes. The
    first attempt alone would take 160 s."""
    rig = slurm_rig
    kept = CheckpointSpec(updates=20)
    run = rig.submit(rig.training(1, UPDATES, (0.2, PAUSE), checkpoints=kept))
    rig.goes_on(run.id, 1)
    job = f"jobid={rig.jobs(run.id)[0].engine_id}"
    slurm.command("scontrol", "update", job, "endtime=now+5")  # a time that has gone by is refused
    ended = rig.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    jobs = rig.jobs(run.id)
    assert [job.attempt for job in jobs] == [1, 2], rig.told()
    assert jobs[0].reason.startswith("TIMEOUT")
    assert rig.curve(run.id) == undisturbed(UPDATES)
