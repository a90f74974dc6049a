"""The stages' table tells which weights are tied, and who owns them."""

from app.exports.stage_rows import shared_weights
from backend.planning.plan import Stage
from backend.profiles.crossing import TiedWeight
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = tuple(Layer(f"l{i}", "Linear", 1e-3, 2e-3, 64, 128) for i in range(4))
EDGES = ((0, 1), (1, 2), (2, 3), (0, 3))


def tied(*tied_weights: TiedWeight) -> Profile:
    return Profile("net", ModelGraph(LAYERS, EDGES, tied_weights=tied_weights), 4)


def test_owner_and_reader_are_named() -> None:
    profile = tied(TiedWeight(0, (3,), "wte.weight", 128))
    stages = (Stage(0, 2, (0,)), Stage(2, 4, (1,)))
    assert shared_weights(profile, stages) == [
        "owns wte.weight, read by 1",
        "reads wte.weight of 0",
    ]


def test_a_weight_within_one_stage_is_nobody_elses_business() -> None:
    profile = tied(TiedWeight(0, (1,), "a.weight", 128))
    assert shared_weights(profile, (Stage(0, 2, (0,)), Stage(2, 4, (1,)))) == ["", ""]
    assert shared_weights(tied(), (Stage(0, 4, (0,)),)) == [""]
