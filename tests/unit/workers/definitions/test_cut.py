"""However a model is cut, its stages compute what the model computes, to the last bit."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from backend.errors import InvalidInput
from workers.definitions.cut import cut
from workers.definitions.layers import LayeredModel, layered
from workers.definitions.loader import Batch, Definition
from workers.definitions.trace import untouched
from workers.runtime.stage import Held, Stage

MODELS = ("mlp", "vgg_digits", "resnet_digits", "gpt_tiny")


@pytest.fixture(scope="module", params=MODELS)
def case(request: pytest.FixtureRequest, zoo) -> tuple[Definition, Batch, LayeredModel]:
    definition = zoo(request.param)
    model = definition.model(seed=3)
    batch = definition.example(3)
    return definition, batch, layered(model, batch[0])


def whole(definition: Definition, batch: Batch, model) -> tuple[Tensor, dict[str, Tensor]]:
    with untouched(model):
        loss = definition.loss(model.train()(batch[0]), batch[1])
        names, parameters = zip(*model.named_parameters(), strict=True)
        return loss, dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))


def in_stages(
    definition: Definition, batch: Batch, model: LayeredModel, bounds: list[int]
) -> tuple[Tensor, dict[str, Tensor]]:
    held: list[tuple[Stage, Held]] = []
    bundle, gradients = (batch[0].clone(),), ()
    found: dict[str, Tensor] = {}
    with untouched(model.model):
        for first, stop in pairwise(bounds):
            loss = definition.loss if stop == bounds[-1] else None
            stage = Stage(cut(model, first, stop).train(), model.specs[first], loss)
            weights = {n: w.clone().requires_grad_() for n, w in stage.weights.items()}
            bundle, kept = stage.forward(bundle, weights, batch[1])
            held.append((stage, kept))
            outputs = bundle
            bundle = tuple(tensor.detach() for tensor in bundle)
        for stage, kept in reversed(held):
            gradients, of_weights = stage.backward(kept, gradients)
            found |= of_weights
    return outputs[0], found


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_stages_equal_the_whole(case, data) -> None:
    definition, batch, model = case
    count = len(model.layers)
    inner = data.draw(st.sets(st.integers(1, count - 1), max_size=4))
    expected_loss, expected = whole(definition, batch, model.model)
    loss, gradients = in_stages(definition, batch, model, [0, *sorted(inner), count])
    assert torch.equal(loss, expected_loss)
    assert gradients.keys() == expected.keys()
    different = [name for name in expected if not torch.equal(gradients[name], expected[name])]
    assert different == []


def test_stage_parameters_are_the_models_own(case) -> None:
    definition, _, model = case
    count = len(model.layers)
    names: list[str] = []
    for first, stop in ((0, count // 2), (count // 2, count)):
        names += [name for name, _ in cut(model, first, stop).named_parameters()]
    assert sorted(names) == sorted(name for name, _ in definition.model().named_parameters())


def test_split_backward_gives_the_same_gradients(case) -> None:
    definition, batch, model = case
    middle = len(model.layers) // 2
    stage = Stage(cut(model, middle, len(model.layers)), model.specs[middle], definition.loss)
    with untouched(model.model), torch.no_grad():
        bundle = cut(model, 0, middle)(batch[0])
    weights = {n: w.clone().requires_grad_() for n, w in stage.weights.items()}

    def forward() -> Held:
        return stage.forward(tuple(tensor.clone() for tensor in bundle), weights, batch[1])[1]

    with untouched(model.model):
        of_inputs, of_weights = stage.backward(forward(), ())
        held = forward()
        assert all(map(torch.equal, stage.backward_input(held, ()), of_inputs))
        later = stage.backward_weight(held, ())
    assert all(torch.equal(later[name], of_weights[name]) for name in of_weights)


@pytest.mark.parametrize(("first", "stop"), [(-1, 2), (2, 2), (3, 2), (0, 9)])
def test_layers_that_are_not_there(zoo, first: int, stop: int) -> None:
    model = layered(zoo("mlp").model(), torch.rand(2, 1, 8, 8))
    with pytest.raises(InvalidInput, match=r"are not in 0\.\.7"):
        cut(model, first, stop)
