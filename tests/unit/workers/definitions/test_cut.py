"""However a model is cut, its stages compute what the model computes, to the last bit."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from workers.definitions.cut import cut
from workers.definitions.layering import layered
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import Batch, LoadedDefinition
from workers.definitions.module_state.untouched import untouched
from workers.definitions.prepare import prepare
from workers.definitions.samples import tensors
from workers.runtime.compute.stage import StageModule

Case = tuple[LoadedDefinition, Batch, LayeredModel]


@pytest.fixture(scope="module")
def case(small_name: str, small_zoo) -> Case:
    definition = small_zoo(small_name)
    torch.manual_seed(0)
    batch = definition.example(2)
    return definition, batch, prepare(definition, batch, seed=3)


@settings(max_examples=3)
@given(data=st.data())
def test_stages_equal_the_whole(case: Case, composed, data) -> None:
    whole, in_stages = composed
    inner = data.draw(st.sets(st.integers(1, len(case[2].layers) - 1), max_size=4))
    assert in_stages(*case, inner).differs_from(whole(*case)) == []


def test_a_cut_before_every_layer(case: Case, composed) -> None:
    whole, in_stages = composed
    everywhere = set(range(1, len(case[2].layers)))
    assert in_stages(*case, everywhere).differs_from(whole(*case)) == []


def test_stage_parameters_are_the_models_own(case: Case) -> None:
    definition, _, model = case
    count = len(model.layers)
    names: list[str] = []
    for first, stop in ((0, count // 2), (count // 2, count)):
        names += [name for name, _ in cut(model, first, stop).named_parameters()]
    own = dict(definition.model().named_parameters(remove_duplicate=False))
    assert set(names) <= own.keys()
    assert len(names) == len({id(own[name]) for name in own})


def test_evaluation_mode_too(case: Case) -> None:
    _, batch, model = case
    bundle = tensors(batch[0])
    with untouched(model.model), torch.no_grad():
        expected = model.model.eval()(*bundle)
        for first, stop in ((0, 2), (2, len(model.layers))):
            bundle = cut(model, first, stop).eval()(*bundle)
    assert torch.equal(bundle, expected)


def test_split_backward_gives_the_same_gradients(zoo) -> None:
    definition = zoo("resnet_digits")
    batch = definition.example(3)
    model = prepare(definition, batch)
    middle = len(model.layers) // 2
    stage = StageModule(cut(model, middle, len(model.layers)), model.specs[middle], definition.loss)
    with untouched(model.model), torch.no_grad():
        bundle = cut(model, 0, middle)(batch[0])
    weights = {n: w.clone().requires_grad_() for n, w in stage.weights.items()}

    def forward():
        return stage.forward(tuple(tensor.clone() for tensor in bundle), weights, batch[1])[1]

    with untouched(model.model):
        of_inputs, of_weights = stage.backward(forward(), ())
        held = forward()
        assert all(map(torch.equal, stage.backward_input(held, ()), of_inputs))
        later = stage.backward_weight(held)
    assert all(torch.equal(later[name], of_weights[name]) for name in of_weights)


def test_two_outputs_reach_the_loss(zoo, composed) -> None:
    """Inception's side classifier needs pictures of the published size."""
    from pathlib import Path

    import workers.zoo
    from workers.definitions.loader import load

    whole, in_stages = composed
    file = Path(workers.zoo.__file__).parent / "inception_v3.py"
    definition = load(file, {"width": 1, "classes": 10})
    batch = definition.example(2)
    model = prepare(definition, batch)
    side = next(i for i, layer in enumerate(model.layers) if layer.name.startswith("auxiliary"))
    case = definition, batch, model
    assert in_stages(*case, {side + 1, side + 30}).differs_from(whole(*case)) == []


@pytest.mark.parametrize(("first", "stop"), [(-1, 2), (2, 2), (3, 2), (0, 9)])
def test_layers_that_are_not_there(zoo, first: int, stop: int) -> None:
    model = layered(zoo("mlp").model(), torch.rand(2, 1, 8, 8))
    with pytest.raises(InvalidInput, match=r"are not in 0\.\.7"):
        cut(model, first, stop)
