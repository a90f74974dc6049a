"""What replicas that split layers hold while they train, counted, beside what is planned."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from backend.planning.channels.layer_split import LayerSplit
from backend.planning.channels.types import LayerType
from backend.planning.memory import replica_parts
from backend.planning.plan import Plan
from backend.prediction.shapes import steady_shape
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, ProfileSpec, TrainSpec
from tests.integration.runtime import counted
from tests.integration.runtime.test_resume import stages
from workers.profiler.main import profiled
from workers.runtime.reports.reporter import Reporter

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
WIDE = Path(__file__).parents[2] / "benchmarks/models/wide.py"
BY_OUTPUTS, BY_INPUTS = LayerType.OUTPUTS, LayerType.INPUTS
CLOSE = 4 * 2**20
"""Bytes by which what is counted may be more or less than planned."""
COUNTED = re.compile(r"rank (\d) held (\d+) bytes")
BOTH = (LayerSplit("0", BY_OUTPUTS), LayerSplit("2", BY_INPUTS))


def test_slices_are_counted_as_they_are_held(write_job, ended) -> None:
    """16.8 million weights of 4 bytes under Adam: copied, each replica has four times 64 MiB of
    them; of split layers its part of that. No checkpoint is made on the way, whose copy would be
    held beside."""
    profile = profiled("wide", WIDE, ProfileSpec(1, 32, repetitions=4), Reporter(0))
    copied = Plan("t", stages(0, len(profile.layers), replicas=(2,)), "1f1b-flush", 32, 4)
    unequal = tuple(replace(one, parts=(1, 3)) for one in BOTH)
    spec = TrainSpec(
        1,
        copied,
        data=DataSpec(samples=256, held_out=0.0),
        optimizer=OptimizerSpec("adam", 0.001),
        epochs=1,
        checkpoints=CheckpointSpec(seconds=0),
        tracing=profile.tracing,
    )
    for plan in (copied, replace(copied, splits=BOTH), replace(copied, splits=unequal)):
        (each,) = replica_parts(profile, plan, steady_shape(plan), "adam")
        job = write_job(WIDE.read_text(), replace(spec, plan=plan))
        held = held_by(ended(job, 2, counted.__name__))
        assert held == [pytest.approx(one.total - one.process, abs=CLOSE) for one in each]


def held_by(said: tuple[list[int], object, str]) -> list[int]:
    """By rank the most bytes at once."""
    codes, _, text = said
    assert set(codes) == {0}, text
    return [int(most) for _, most in sorted(COUNTED.findall(text))]
