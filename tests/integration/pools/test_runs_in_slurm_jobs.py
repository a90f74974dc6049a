"""Runs that jobs of a real Slurm carry: with agents as they are."""

from collections.abc import Callable
from pathlib import Path

import pytest

from backend.runs.pools.job import JobOrder
from backend.runs.request.spec import DataSpec
from backend.runs.states import RunState
from backend.settings import Settings
from tests.integration.hosts.slow_training import BATCH, MICROBATCH
from tests.integration.pools.rig import PoolRig
from tests.slurm import Slurm
from workers.pools.engine import Engine
from workers.pools.handed_down import handed_down
from workers.pools.slurm.engine import SlurmEngine

ROOT = Path(__file__).parents[3]
UPDATES = 800
"""However fast the machine, the run is still there when its second job is preempted."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def engine(settings: Settings) -> Engine:
    folder = settings.shared_folder / "pool"
    told = {**handed_down(settings, folder / "secrets"), "PYTHONPATH": str(ROOT)}
    return SlurmEngine("gpu", folder / "jobs", told)


def test_a_run_goes_on_in_other_jobs_when_it_is_warned_and_when_it_is_preempted(
    new_pool: Callable[..., PoolRig], slurm: Slurm
) -> None:
    """The warning leaves time to save. Preemption here tells the ranks too, who end at once."""
    rig = new_pool(engine, lease=30)
    rig.begin()
    rig.wait(lambda: rig.backend.pools.list())
    lasts = {"data": DataSpec("synthetic", MICROBATCH * BATCH * UPDATES)}
    run = rig.submit(rig.training(2, **lasts))
    rig.wait(lambda: len(rig.curve(run.id)) > UPDATES // 50)
    slurm.command("scancel", "--signal=USR1", rig.jobs(run.id)[0].engine_id)
    rig.wait(lambda: rig.backend.runs.get(run.id).attempt == 2)
    rig.wait(lambda: rig.backend.runs.get(run.id).state is RunState.RUNNING)
    before = len(rig.curve(run.id))
    rig.wait(lambda: len(rig.curve(run.id)) > before)
    urgent = SlurmEngine("urgent", rig.settings.home, {})
    urgent.submit(JobOrder("urgent", 0, 4, 4, ("sleep", "3")))
    ended = rig.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    attempts = rig.backend.runs.attempts(run.id)
    assert [attempt.outcome for attempt in attempts] == ["restarted", "restarted", "succeeded"]
    assert attempts[0].error.kind == "AgentWarned"
    assert attempts[1].step is not None
    assert [job.attempt for job in rig.jobs(run.id)] == [1, 2, 3]
    undisturbed = rig.submit(rig.training(1, **lasts))
    rig.until_final(undisturbed.id)
    assert rig.curve(run.id) == rig.curve(undisturbed.id)
    assert len(rig.curve(run.id)) == UPDATES
