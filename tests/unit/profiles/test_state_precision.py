"""Bytes per weight of every precision of state, and profiles that are kept in one."""

from typing import get_args

import pytest

from backend.errors import InvalidInput
from backend.profiles.crossing import Crossing, TiedWeight
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.state_precision import (
    STATE_PRECISIONS,
    StatePrecision,
    state_precision_named,
)
from backend.profiles.what_if import kept_in

LAYER = Layer("l", "Linear", 2.0, 4.0, 40, 4000, 0.5, saved_bytes=60, frozen_bytes=800)
GRAPH = ModelGraph(
    (LAYER,) * 3,
    ((0, 1), (1, 2)),
    (Crossing(0, (1,), 40), Crossing(0, (2,), 4000)),
    (TiedWeight(0, (2,), "w", 4000),),
)
PROFILE = Profile("p", GRAPH, 2)


def test_every_name_has_its_facts():
    assert tuple(STATE_PRECISIONS) == get_args(StatePrecision)
    assert len({kind.title for kind in STATE_PRECISIONS.values()}) == len(STATE_PRECISIONS)
    assert len({(k.weight, k.master, k.state) for k in STATE_PRECISIONS.values()}) == 6


@pytest.mark.parametrize(
    ("name", "beside_one_version"),
    [
        ("float32", 4 + 2 * 4),
        ("float32-state16", 4 + 2 * 2),
        ("bfloat16-masters", 2 + 4 + 2 * 4),
        ("bfloat16-masters-state16", 2 + 4 + 2 * 2),
        ("bfloat16-state32", 2 + 2 * 4),
        ("bfloat16", 2 + 2 * 2),
    ],
)
def test_bytes_of_a_weight_under_adam(name, beside_one_version):
    """A gradient, a master, two values: 14 bytes beside the weight's 2 are the 16 of ZeRO
    (Rajbhandari et al., SC 2020, section 3.1)."""
    kind = state_precision_named(name)
    assert kind.weight * (1 + kind.optimizer(2)) == beside_one_version


def test_weights_are_halved_and_nothing_else():
    found = kept_in(PROFILE, "bfloat16-masters")
    assert found.state_precision == "bfloat16-masters"
    assert [(x.parameter_bytes, x.frozen_bytes) for x in found.layers] == [(2000, 400)] * 3
    assert [(x.output_bytes, x.saved_bytes, x.compute, x.update) for x in found.layers] == [
        (40, 60, 6.0, 0.5)
    ] * 3
    assert found.graph.crossings == (Crossing(0, (1,), 40), Crossing(0, (2,), 2000, number_bytes=2))
    assert found.graph.tied_weights == (TiedWeight(0, (2,), "w", 2000),)


@pytest.mark.parametrize("name", STATE_PRECISIONS)
def test_there_and_back(name):
    assert kept_in(kept_in(PROFILE, name), "float32") == PROFILE
    assert kept_in(kept_in(PROFILE, "bfloat16"), name) == kept_in(PROFILE, name)


def test_an_unknown_one_names_the_known_ones():
    with pytest.raises(InvalidInput, match="float8") as refusal:
        kept_in(PROFILE, "float8")
    assert "bfloat16-masters" in refusal.value.advice
