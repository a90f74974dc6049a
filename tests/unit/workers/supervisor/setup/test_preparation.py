"""What the ranks of a run are given, and what is said when devices are short."""

import sys
from collections.abc import Sequence

import pytest

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.job import Job
from backend.runs.request.spec import ProfileSpec, RunSpec, TrainSpec
from workers.supervisor.setup.preparation import gpus_for, rank_command, sharing, world_size

PLAN = Plan("even", Partition((Stage(0, 1, (0, 2)), Stage(1, 2, (1,)))), "pipedream", 16)
MANY = 100_000


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


@pytest.mark.parametrize(("ranks", "gpus", "used"), [(1, 0, 0), (2, 2, 2), (2, 8, 2), (3, 2, 0)])
def test_every_rank_has_a_gpu_or_none_has(ranks: int, gpus: int, used: int):
    assert gpus_for(ranks, gpus) == used


@pytest.mark.parametrize(
    ("ranks", "gpus", "words"),
    [
        (1, 0, []),
        (MANY, MANY, []),
        (MANY, 0, ["CPU core"]),
        (MANY, 1, ["one rank per GPU", "CPU core"]),
    ],
)
def test_short_devices_are_said(ranks: int, gpus: int, words: Sequence[str]):
    warnings = sharing(ranks, gpus)
    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))
