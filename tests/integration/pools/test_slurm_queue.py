"""Runs that wait in a real Slurm's queue, and those that are taken out of it."""

from collections.abc import Callable

import pytest

from backend.runs.request.spec import PoolSpec, ProfileSpec
from backend.runs.states import RunState
from tests.integration.hosts.slow_training import MODEL
from tests.integration.pools.conftest import in_slurm
from tests.integration.pools.rig import PoolRig
from tests.slurm import Slurm, wait

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_a_cancelled_run_leaves_nothing_in_slurm(
    slurm_rig: PoolRig, slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "stageflow")  # why a start is not foretold
    rig = slurm_rig
    shapes = [(1, 1), (1, 4), (2, 4), (4, 4)]
    wait(lambda: foretold(rig) == shapes, lambda: (rig.pool(), slurm.command("sinfo", "-N")), 200)
    run = rig.submit(rig.training(2, pauses=(0.2,)))  # until it is cancelled
    rig.wait(lambda: len(rig.curve(run.id)) > 3)
    waiting = rig.submit(rig.training(1, pool=PoolSpec("gpu", 4, devices=4)))
    rig.wait(lambda: "waits in gpu: Resources" in (rig.backend.runs.why_waiting(waiting) or ""))
    for each in (waiting, run):
        rig.backend.runs.cancel(each.id)
    rig.wait(lambda: not rig.agents())
    slurm.until_idle()
    rig.wait(lambda: all(job.is_over for job in (*rig.jobs(run.id), *rig.jobs(waiting.id))))
    assert len(rig.jobs(run.id)) == len(rig.jobs(waiting.id)) == 1


def test_twenty_runs_of_three_people_take_turns(
    new_pool: Callable[..., PoolRig], slurm: Slurm
) -> None:
    """One has fourteen runs in the queue before the others come with two and four: projects take
    turns all the same, and the runs of one to four devices all come to their end."""
    rig = new_pool(in_slurm, lease=30)
    rig.backend.pools.beat("gpu", "test", rig.engine.room())
    projects = [rig.backend.projects.add(name).id for name in ("greedy", "modest", "late")]
    runs: dict[int, str] = {}
    for project, count in zip(projects, (14, 2, 4), strict=True):
        inside = rig.backend.within(project)
        own = inside.definitions.add("slow.py", MODEL).id
        for number in range(count):
            asked = PoolSpec("gpu", devices=1 + number % 4)
            run = inside.runs.submit(ProfileSpec(own, 2, 1, pool=asked))
            runs[run.id] = inside.projects.get(project).name
    rig.begin()
    for run_id in runs:
        ended = rig.until_final(run_id)
        assert ended.state is RunState.SUCCEEDED, ended.error
    order = sorted(runs, key=lambda run_id: rig.jobs(run_id)[0].submitted_at)
    last = {name: max(order.index(r) for r in runs if runs[r] == name) for name in runs.values()}
    assert last["modest"] < 6  # each third job, of two
    assert last["late"] < 12
    assert last["greedy"] == 19


def foretold(rig: PoolRig) -> list[tuple[int, int]]:
    """The shapes of jobs for which the pool says when they would start."""
    return [(start.machines, start.devices) for start in rig.pool().room.starts]
