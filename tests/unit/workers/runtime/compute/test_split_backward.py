"""The two halves of a backward give together what one backward gives."""

import pytest
import torch
from torch import Tensor, nn

from workers.definitions.tracing.record import TensorSpec
from workers.runtime.compute.stage import StageModule


class Tied(nn.Module):
    """One weight in two places, one of them behind the other."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 5)
        self.scale = nn.Parameter(torch.rand(5))
        self.alone = nn.Parameter(torch.rand(5))
        self.unused = nn.Parameter(torch.rand(5))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.inner(torch.relu(self.inner(x)) * self.scale)
        return y + x, self.alone * 2, self.scale


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 5, num_layers=2, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return (self.lstm(x.view(-1, 2, 5))[0].reshape(x.shape),)


class Several(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(5, 7), nn.LayerNorm(7), nn.GELU(), nn.Linear(7, 5), nn.BatchNorm1d(5)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return (self.body(x) * torch.sigmoid(x),)


def both(module: nn.Module, spec: TensorSpec):
    torch.manual_seed(1)
    stage = StageModule(module, (spec,))
    weights = {name: w.clone().requires_grad_() for name, w in stage.weights.items()}
    value = torch.rand(4, 5)
    whole, halves = (stage.forward((value.clone(),), weights, None) for _ in range(2))
    gradients = tuple(torch.rand_like(tensor) for tensor in whole[1].outputs)
    inputs, found = stage.backward(whole[1], gradients)
    first = stage.backward_input(halves[1], gradients)
    return (inputs, found), (first, stage.backward_weight(halves[1])), halves[1].deferred


@pytest.mark.parametrize("model", [Tied, Recurrent, Several])
@pytest.mark.parametrize("differentiable", [True, False])
def test_equal_to_one_backward(model, differentiable: bool) -> None:
    spec = TensorSpec((4, 5), torch.float32, differentiable)
    (inputs, weights), (first, second), _ = both(model(), spec)
    assert len(first) == len(inputs) == differentiable
    assert all(map(torch.allclose, first, inputs))
    assert weights.keys() == second.keys()
    assert all(torch.allclose(weights[name], second[name], atol=1e-6) for name in weights)


def test_nothing_goes_the_whole_way_twice_in_a_chain() -> None:
    _, _, deferred = both(Several(), TensorSpec((4, 5), torch.float32, True))
    assert deferred.whole == ()
    assert sum(map(len, deferred.groups.values())) == 8


def test_a_weight_in_two_places_goes_the_whole_way() -> None:
    _, _, deferred = both(Tied(), TensorSpec((4, 5), torch.float32, True))
    # scale, alone, unused, inner.weight, inner.bias: each but for the unused one used twice or
    # handed on, and what no input reaches goes no way at all
    assert deferred.whole == (0, 1, 2, 3, 4)
