"""A profile as a model: it waits as long as its layers take, there and back, in any halves."""

import pytest
import torch

from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from workers.definitions.cut import cut
from workers.definitions.reorder import in_order
from workers.runtime.compute.stage import StageModule
from workers.runtime.emulated.definition import EmulatedDefinition
from workers.runtime.emulated.device import EmulatedDevice
from workers.runtime.emulated.model import layered

LAYERS = (
    Layer("a", "", 1.0, 2.0, 400, 800, backward_input=0.5),
    Layer("b", "", 4.0, 8.0, 4000, 0),
    Layer("c", "", 16.0, 32.0, 40, 80),
    Layer("d", "", 64.0, 128.0, 4, 8),
)
PROFILE = Profile("m", ModelGraph(LAYERS, ((0, 1), (0, 2), (1, 3), (2, 3))), 4)


class Counting(EmulatedDevice):
    def __init__(self) -> None:
        super().__init__(1.0)
        self.total = 0.0

    def busy(self, seconds: float) -> None:
        self.total += seconds


@pytest.fixture
def device() -> Counting:
    return Counting()


def test_tensors_have_a_share_of_their_bytes(device) -> None:
    model = layered(PROFILE, device, 0.1)
    shapes = [[spec.shape for spec in bundle] for bundle in model.specs]
    assert shapes == [[(4, 1)], [(10,)], [(10,), (100,)], [(100,), (1,)]]
    assert {n: tuple(w.shape) for n, w in model.model.named_parameters()} == {
        "layer0.weight": (20, 1),
        "layer2.weight": (2, 1),
        "layer3.weight": (1, 1),
    }


@pytest.mark.parametrize("order", [(), (0, 2, 1, 3)])
def test_every_layer_is_waited_for_in_any_order_and_cut(device, order) -> None:
    model = in_order(layered(PROFILE, device, 1.0), order)
    bundle, stages, held = (torch.zeros(4, 1),), [], []
    for first, stop in ((0, 2), (2, 4)):
        loss = EmulatedDefinition("", model.model).loss if stop == 4 else None
        stages.append(StageModule(cut(model, first, stop), model.specs[first], loss))
        weights = {n: w.clone().requires_grad_() for n, w in stages[-1].weights.items()}
        bundle, kept = stages[-1].forward(bundle, weights, torch.zeros(4))
        bundle = tuple(tensor.detach() for tensor in bundle)
        held.append(kept)
    assert device.total == 1 + 4 + 16 + 64
    device.total, gradients = 0.0, ()
    for stage, kept in zip(reversed(stages), reversed(held), strict=True):
        gradients, _ = stage.backward(kept, gradients)
    assert device.total == 2 + 8 + 32 + 128


def test_the_halves_of_a_backward_are_waited_for_apart(device) -> None:
    model = layered(PROFILE, device, 1.0)
    stage = StageModule(cut(model, 1, 4), model.specs[1], EmulatedDefinition("", model.model).loss)
    weights = {n: w.clone().requires_grad_() for n, w in stage.weights.items()}
    _, held = stage.forward((torch.zeros(100),), weights, torch.zeros(4))
    device.total = 0.0
    stage.backward_input(held, ())
    assert device.total == 8 + 16 + 64
    stage.backward_weight(held)
    assert device.total == 8 + 32 + 128
