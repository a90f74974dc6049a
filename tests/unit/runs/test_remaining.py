"""When a run is expected to end: as predicted, and by its own pace once it has one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf

import pytest

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.remaining import expected
from backend.runs.request.spec import DataSpec, ProfileSpec, RunSpec, TrainSpec
from backend.runs.run import Run, RunProgress, RunSummary
from backend.runs.states import RunState

NOW = datetime.now(UTC)
PLAN = Plan("", Partition((Stage(0, 1, (0,)),)), "gpipe", 4, batch=2)
TRAIN = TrainSpec(1, PLAN, 1, DataSpec("synthetic", 800), epochs=10)
"""8000 samples in 1000 updates."""
OTHER = replace(TRAIN, data=DataSpec("digits"))
EMULATED = replace(TRAIN, emulate=1.0)


def after(seconds: float, spec: RunSpec, progress: RunProgress | None) -> Run:
    """A run that began so long ago."""
    began = NOW - timedelta(seconds=seconds)
    state, nothing = RunState.RUNNING, RunSummary()
    return Run(1, "", spec, state, 1, "a", began, began, None, progress, nothing, None, False)


@pytest.mark.parametrize(
    ("spent", "spec", "progress", "rate", "left"),
    [
        (30, TRAIN, None, 80, 70),
        (30, TRAIN, RunProgress("load", 0, 1), 80, 70),
        (30, TRAIN, RunProgress("evaluate", 3, 9), 80, 70),
        (300, TRAIN, None, 80, inf),
        (30, TRAIN, None, 0, inf),
        (30, OTHER, None, 80, inf),
        (30, OTHER, RunProgress("train", 40, 1000), 80, 96),
        (30, TRAIN, RunProgress("train", 0, 1000), 80, 100),
        (30, TRAIN, RunProgress("train", 99, 1000), 80, 90.1),
        (30, TRAIN, RunProgress("train", 100, 1000), 80, 270),
        (30, TRAIN, RunProgress("train", 10, 1000), 0, 2970),
        (30, EMULATED, RunProgress("train", 10, 1000), 80, 2970),
        (30, EMULATED, None, 80, inf),
        (30, ProfileSpec(1), RunProgress("layers", 10, 40), 0, 90),
        (30, ProfileSpec(1), None, 0, inf),
    ],
)
def test_the_table(spent, spec, progress, rate, left):
    assert expected(after(spent, spec, progress), rate, NOW) == pytest.approx(left)
