"""The catalog of optimizers: one entry per name that a document may hold."""

from typing import get_args

import pytest

from backend.cluster.presets import local
from backend.codec import from_plain
from backend.errors import InvalidInput
from backend.planning.optimizers import OPTIMIZERS, OptimizerName, optimizer_named
from backend.planning.savings import MemorySaving
from backend.prediction.question import Question
from backend.profiles.state_precision import STATE_PRECISIONS
from backend.runs.request.optimizer_spec import OptimizerSpec
from tests.app.seed import a_profile


def test_every_name_has_its_facts():
    assert tuple(OPTIMIZERS) == get_args(OptimizerName)
    assert len({found.title for found in OPTIMIZERS.values()}) == len(OPTIMIZERS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_specification_may_name_each(name):
    assert from_plain(OptimizerSpec, {"name": name}).name == name
    assert optimizer_named(name).copies() == 1 + OPTIMIZERS[name].values


def test_an_unknown_one_names_the_known_ones():
    with pytest.raises(InvalidInput, match="shampoo") as refusal:
        optimizer_named("shampoo")
    assert "adamw" in refusal.value.advice


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_averaged_weights_are_a_float32_more_per_weight_which_replicas_share(name):
    plain, averaged = optimizer_named(name), optimizer_named(f"{name}+ema")
    for precision, kind in STATE_PRECISIONS.items():
        more = averaged.copies(precision) - plain.copies(precision)
        assert more * kind.weight == pytest.approx(4)
        assert averaged.copies(precision, 4) - plain.copies(precision, 4) == pytest.approx(more / 4)
    assert OptimizerSpec(name, ema=0.5).planned == f"{name}+ema"
    assert OptimizerSpec(name).planned == name


def test_what_reads_whole_matrices_is_not_planned_with_sharded_state():
    profile = a_profile()
    asked = Question(profile, local(2), optimizer="adafactor")
    assert not any(savings.shard_state for savings in asked.savings)
    with pytest.raises(InvalidInput, match="whole matrices"):
        Question(profile, local(2), optimizer="adafactor", shard_state=MemorySaving.ALWAYS)
