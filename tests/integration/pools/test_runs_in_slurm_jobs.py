"""Runs that jobs of a real Slurm carry: with agents as they are."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from backend.runs.pools.job import JobOrder
from backend.runs.request.spec import CheckpointSpec, DataSpec, PoolSpec, ProfileSpec
from backend.runs.states import RunState
from backend.settings import Settings
from tests.integration.hosts.slow_training import BATCH, MICROBATCH, MODEL
from tests.integration.pools.rig import PoolRig
from tests.slurm import CONTROLLER, QUIET, Slurm
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


def pool(rig: PoolRig):
    """As pages show it."""
    return rig.backend.pools.list()[0]


def power_off(process: psutil.Process) -> None:
    """An agent and all that it started, at once."""
    for each in (*process.children(recursive=True), process):
        with suppress(psutil.NoSuchProcess):
            each.kill()


def goes_on(rig: PoolRig, run_id: int, attempt: int) -> None:
    """Until that attempt has learned something."""
    rig.wait(lambda: rig.backend.runs.get(run_id).attempt == attempt)
    rig.wait(lambda: rig.backend.runs.get(run_id).state is RunState.RUNNING)
    before = len(rig.curve(run_id))
    rig.wait(lambda: len(rig.curve(run_id)) > before)


@QUIET
def test_a_controller_that_crashes_costs_a_run_nothing(
    new_pool: Callable[..., PoolRig], slurm: Slurm
) -> None:
    rig = new_pool(engine, lease=30)
    rig.begin()
    rig.wait(lambda: rig.backend.pools.list())
    run = rig.submit(rig.training(1))
    goes_on(rig, run.id, 1)
    slurm.until_saved()
    slurm.kill(CONTROLLER)
    rig.wait(lambda: pool(rig).fault)
    assert rig.until_final(run.id).state is RunState.SUCCEEDED
    assert not rig.jobs(run.id)[0].is_over  # nobody knows
    slurm.start(CONTROLLER)
    rig.wait(lambda: not pool(rig).fault)
    rig.wait(lambda: rig.jobs(run.id)[0].is_over)
    assert len(rig.backend.runs.attempts(run.id)) == len(rig.jobs(run.id)) == 1


def test_a_run_outlives_its_job_and_a_machine(
    new_pool: Callable[..., PoolRig], slurm: Slurm
) -> None:
    """Somebody kills the job, and then a machine is lost."""
    rig = new_pool(engine, lease=6)
    rig.begin()
    rig.wait(lambda: rig.backend.pools.list())
    lasts = {"data": DataSpec("synthetic", MICROBATCH * BATCH * UPDATES)}
    run = rig.submit(rig.training(2, checkpoints=CheckpointSpec(updates=20), **lasts))
    goes_on(rig, run.id, 1)
    slurm.command("scancel", rig.jobs(run.id)[0].engine_id)
    goes_on(rig, run.id, 2)
    (member,) = [agent for agent in rig.agents(run.id) if agent.environ()["SLURM_PROCID"] == "1"]
    power_off(member)
    ended = rig.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    outcomes = [attempt.outcome for attempt in rig.backend.runs.attempts(run.id)]
    assert outcomes == ["restarted", "restarted", "succeeded"]
    undisturbed = rig.submit(rig.training(1, **lasts))
    rig.until_final(undisturbed.id)
    assert rig.curve(run.id) == rig.curve(undisturbed.id)


def test_a_cancelled_run_leaves_nothing_in_slurm(
    new_pool: Callable[..., PoolRig], slurm: Slurm
) -> None:
    rig = new_pool(engine, lease=30)
    rig.begin()
    rig.wait(lambda: rig.backend.pools.list())
    run = rig.submit(rig.training(2))
    rig.wait(lambda: len(rig.curve(run.id)) > 3)
    waiting = rig.submit(rig.training(1, pool=PoolSpec("gpu", 4, devices=4)))
    rig.wait(lambda: "waits in gpu: Resources" in (rig.backend.runs.why_waiting(waiting) or ""))
    for each in (waiting, run):
        rig.backend.runs.cancel(each.id)
    rig.wait(lambda: not rig.agents(), seconds=30)
    slurm.until_idle()
    rig.wait(lambda: all(job.is_over for job in (*rig.jobs(run.id), *rig.jobs(waiting.id))))
    assert len(rig.jobs(run.id)) == len(rig.jobs(waiting.id)) == 1


def test_twenty_runs_of_three_people_take_turns(
    new_pool: Callable[..., PoolRig], slurm: Slurm
) -> None:
    """One has fourteen runs in the queue before the others come with two and four: projects take
    turns all the same, and the runs of one to four devices all come to their end."""
    rig = new_pool(engine, lease=30)
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
