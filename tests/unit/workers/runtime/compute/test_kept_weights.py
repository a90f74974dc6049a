"""Which weights of a module are kept in bfloat16, and for how long."""

import torch
from torch import nn

from backend.profiles.state_precision import STATE_PRECISIONS
from workers.runtime.compute.kept_weights import as_kept, keep_frozen, kept_weight

HALF = STATE_PRECISIONS["bfloat16-masters"]


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.norm = nn.Linear(3, 3), nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.last.weight = self.first.weight


def dtypes(module: nn.Module) -> dict[str, torch.dtype]:
    return {name: weight.dtype for name, weight in module.named_parameters()}


def test_matrices_are_rounded_and_vectors_and_doubles_stay():
    matrix, vector = torch.rand(2, 2), torch.rand(2)
    assert torch.equal(kept_weight(matrix, HALF), matrix.bfloat16())
    assert kept_weight(vector, HALF) is vector
    double = matrix.double()
    assert kept_weight(double, HALF) is double
    assert kept_weight(matrix, STATE_PRECISIONS["float32-state16"]) is matrix


def test_inside_a_module_has_what_is_kept_and_afterwards_its_own():
    module = Tied()
    own = dict(module.named_parameters(remove_duplicate=False))
    with as_kept(module, HALF):
        assert module.first.weight.dtype == torch.bfloat16
        assert module.last.weight is module.first.weight
        assert module.norm.weight is own["norm.weight"]
    after = dict(module.named_parameters(remove_duplicate=False))
    assert all(after[name] is weight for name, weight in own.items())


def test_frozen_weights_are_rounded_once_and_buffers_are_not():
    module = Tied()
    module.first.requires_grad_(False)
    first = module.first.weight.detach().clone()
    keep_frozen(module, HALF)
    assert dtypes(module) == {
        "first.weight": torch.bfloat16,
        "first.bias": torch.float32,
        "last.bias": torch.float32,
        "norm.weight": torch.float32,
        "norm.bias": torch.float32,
    }
    assert module.norm.running_mean.dtype == torch.float32
    assert torch.equal(module.first.weight, first.bfloat16())
    assert module.last.weight is module.first.weight
