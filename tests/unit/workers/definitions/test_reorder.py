"""Layers in any topological order make the same model."""

import random

import pytest
import torch

from backend.errors import InvalidInput
from backend.profiles.crossing import Crossing
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from workers.definitions.layers import LayeredModel
from workers.definitions.prepare import prepare
from workers.definitions.reorder import in_order

WITHOUT_NOISE = ("inception_v3", "resnet_digits", "s2vt", "vit")


@pytest.fixture(scope="module", params=WITHOUT_NOISE)
def case(request, small_zoo):
    definition = small_zoo(request.param)
    torch.manual_seed(0)
    batch = definition.example(2)
    return definition, batch, prepare(definition, batch, seed=3)


def topological(layered: LayeredModel, seed: int) -> tuple[int, ...]:
    """Some order in which no layer comes before one that it reads."""
    chance, order = random.Random(seed), []
    sources = {i: {a for a, b in layered.edges if b == i} for i in range(len(layered.layers))}
    while sources:
        ready = [i for i, needed in sources.items() if needed <= set(order)]
        order.append(chance.choice(ready))
        del sources[order[-1]]
    return tuple(order)


@pytest.mark.parametrize("seed", range(2))
def test_stages_of_any_order_equal_the_whole(case, composed, seed: int) -> None:
    whole, in_stages = composed
    definition, batch, layered = case
    moved = in_order(layered, topological(layered, seed))
    third = len(moved.layers) // 3
    found = in_stages(definition, batch, moved, {third, 2 * third})
    expected = whole(definition, batch, layered)
    torch.testing.assert_close(found.loss, expected.loss)
    assert found.gradients.keys() == expected.gradients.keys()
    for name, gradient in found.gradients.items():
        wanted = expected.gradients[name]
        assert (gradient - wanted).abs().max() <= 1e-4 * wanted.abs().max(), name


def test_bundles_are_what_the_planner_counts(case) -> None:
    """The bytes of a reordered profile's cut are those of the bundle that the stage is sent."""
    _, _, layered = case
    layers = tuple(Layer(str(i), "", 0, 0, 0, 0) for i in range(len(layered.layers)))
    crossings = tuple(Crossing(*each) for each in layered.crossings)
    profile = Profile("m", ModelGraph(layers, layered.edges, crossings), 2)
    order = topological(layered, 5)
    counted = profile.in_order(order).graph.cut_bytes
    moved = in_order(layered, order)
    first = order.index(0)  # the model's inputs count as made by its first layer
    for cut in range(first + 1, len(order)):
        assert sum(spec.num_bytes for spec in moved.specs[cut]) == counted[cut - 1]


def test_an_order_that_is_none_is_refused(case) -> None:
    _, _, layered = case
    backwards = tuple(reversed(range(len(layered.layers))))
    with pytest.raises(InvalidInput, match="only later"):
        in_order(layered, backwards)
    with pytest.raises(InvalidInput, match="the model has"):
        in_order(layered, (1, 0))
    assert in_order(layered, ()) is layered
    assert in_order(layered, tuple(range(len(layered.layers)))) is layered
