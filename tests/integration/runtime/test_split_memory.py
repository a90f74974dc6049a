"""What replicas that split layers hold while they train, counted, beside what is planned."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from backend.pipeline.memory import Holding
from backend.planning.channels.layer_split import LayerSplit
from backend.planning.channels.types import LayerType
from backend.planning.memory import replica_parts
from backend.planning.plan import Plan
from backend.prediction.shapes import steady_shape
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import DataSpec, ProfileSpec, TrainSpec
from tests.integration.runtime import counted
from tests.integration.runtime.test_resume import stages
from workers.profiler.main import profiled
from workers.runtime.reports.reporter import Reporter

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
WIDE = Path(__file__).parents[2] / "benchmarks/models/wide.py"
BY_OUTPUTS, BY_INPUTS = LayerType.OUTPUTS, LayerType.INPUTS
CLOSE = 4 * 2**20
"""Bytes by which what is counted may be more or less than planned."""
FEW = 32 * 2**20
"""Bytes below which what went uncounted may be taken off the most that was counted."""
COUNTED = re.compile(r"rank (\d) held (\d+) bytes, of what it trained with (\d+)")
BOTH = (LayerSplit("0", BY_OUTPUTS), LayerSplit("2", BY_INPUTS))


def test_slices_are_counted_as_they_are_held(write_job, ended) -> None:
    """16.8 million weights of 4 bytes under Adam: copied, each replica has four times 64 MiB of
    them; of split layers its part of that."""
    profile = profiled("wide", WIDE, ProfileSpec(1, 32, repetitions=4), Reporter(0))
    copied = Plan("t", stages(0, len(profile.layers), replicas=(2,)), "1f1b-flush", 32, 4)
    unequal = tuple(replace(one, parts=(1, 3)) for one in BOTH)
    for plan in (copied, replace(copied, splits=BOTH), replace(copied, splits=unequal)):
        data = DataSpec(samples=256, held_out=0.0)
        rule = OptimizerSpec("adam", 0.001)
        spec = TrainSpec(1, plan, data=data, optimizer=rule, epochs=1, tracing=profile.tracing)
        (each,) = replica_parts(profile, plan, steady_shape(plan), "adam")

        def train(spec: TrainSpec = spec) -> list[tuple[int, int]]:
            return held_by(ended(write_job(WIDE.read_text(), spec), 2, counted.__name__))

        held = counted_well(train, each)
        for (most, gone), one in zip(held, each, strict=True):
            assert 0 <= gone < FEW
            assert most - gone == pytest.approx(one.total - one.process, abs=CLOSE)


def held_by(said: tuple[list[int], object, str]) -> list[tuple[int, int]]:
    """By rank the most bytes at once, and those at the end."""
    codes, _, text = said
    assert set(codes) == {0}, text
    return [(int(most), int(left)) for _, most, left in sorted(COUNTED.findall(text))]


def counted_well(
    train: Callable[[], list[tuple[int, int]]], each: Sequence[Holding]
) -> list[tuple[int, int]]:
    """By rank the most bytes at once, and how many are counted at the end that are gone. A training
    leaves the optimizer's state: what is counted beside it has been let go of by threads of gloo's,
    whom nobody counts, up to 17 MiB of split layers. On a full machine it may be buckets of
    gradients, 192 MiB of them, so the training is repeated until it is less, four times at most."""
    for _ in range(4):
        ranks = zip(train(), each, strict=True)
        held = [(most, left - one.optimizer) for (most, left), one in ranks]
        if all(gone < FEW for _, gone in held):
            break
    return held
