"""What the ranks of a run are given."""

import sys

import pytest

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.dispatch.placement import world_size
from backend.runs.job import Job
from backend.runs.request.spec import ProfileSpec, RunSpec, TrainSpec
from workers.supervisor.setup.preparation import rank_command

PLAN = Plan("even", Partition((Stage(0, 1, (0, 2)), Stage(1, 2, (1,)))), "pipedream", 16)


@pytest.mark.parametrize(("spec", "size"), [(ProfileSpec(1), 1), (TrainSpec(1, PLAN), 3)])
def test_a_plan_takes_one_process_per_device(spec: RunSpec, size: int):
    assert world_size(spec) == size


@pytest.mark.parametrize(
    ("spec", "module"),
    [(ProfileSpec(1), "workers.profiler.main"), (TrainSpec(1, PLAN), "workers.runtime.main")],
)
def test_the_command_can_be_typed_by_hand(spec: RunSpec, module: str):
    job = Job(7, 1, "vgg", spec, "/x/vgg.py", "/runs/7/attempt-1/work")
    assert rank_command(job) == [sys.executable, "-u", "-m", module, "/runs/7/attempt-1/job.json"]
