"""A run in a Slurm whose controller crashes."""

import pytest

from backend.runs.states import RunState
from tests.integration.pools.rig import PoolRig
from tests.slurm import CONTROLLER, Slurm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_a_controller_that_crashes_costs_a_run_nothing(slurm_rig: PoolRig, slurm: Slurm) -> None:
    """It ends while nobody knows of its job."""
    rig = slurm_rig
    run = rig.submit(rig.training(1, 200, (0.02,)))  # 16 s: its job is to be saved before it ends
    rig.wait(lambda: rig.jobs(run.id) and rig.jobs(run.id)[0].hosts)
    slurm.until_saved(rig.jobs(run.id)[0].engine_id)
    rig.goes_on(run.id, 1)
    slurm.kill(CONTROLLER)
    try:
        rig.wait(lambda: rig.pool().fault)
        assert rig.until_final(run.id).state is RunState.SUCCEEDED
        assert not rig.jobs(run.id)[0].is_over
    finally:
        slurm.start(CONTROLLER)
    rig.wait(lambda: not rig.pool().fault)
    rig.wait(lambda: rig.jobs(run.id)[0].is_over)
    assert len(rig.backend.runs.attempts(run.id)) == len(rig.jobs(run.id)) == 1
