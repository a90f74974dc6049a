"""Which weights of a module are kept in bfloat16, and for how long."""

import pytest
import torch
from torch import nn

from backend.profiles.state_precision import STATE_PRECISIONS
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.compute.kept_weights import as_kept, keep_frozen, kept_weight
from workers.runtime.compute.stage import StageModule

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


MODULES = {
    "linear": (nn.Linear(4, 4), (3, 4)),
    "convolution": (nn.Conv2d(4, 4, 1), (3, 4, 2, 2)),
    "transposed": (nn.ConvTranspose2d(4, 4, 1), (3, 4, 2, 2)),
    "lstm": (nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True), (2, 5, 4)),
    "gru": (nn.GRU(4, 3), (2, 5, 4)),
    "transformer": (nn.TransformerEncoderLayer(4, 2, batch_first=True), (2, 5, 4)),
    "batch norm": (nn.BatchNorm2d(4), (3, 4, 2, 2)),
    "layer norm": (nn.LayerNorm(4), (3, 4)),
    "group norm": (nn.GroupNorm(2, 4), (3, 4)),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_modules_compute_with_what_is_kept_and_give_gradients_of_its_dtype(name, dtype):
    """Whatever comes in under autocast, with weights put where a rank puts a version's."""
    module, shape = MODULES[name]
    stage = StageModule(module, (TensorSpec(shape, dtype, False),), precision="bfloat16")
    kept = {n: kept_weight(w, HALF).clone().requires_grad_() for n, w in stage.weights.items()}
    output = stage.run((torch.rand(shape).to(dtype),), kept)
    output = output[0] if isinstance(output, tuple) else output
    found = torch.autograd.grad(output.float().square().sum(), [*kept.values()])
    for weight, gradient in zip(kept.values(), found, strict=True):
        assert gradient.dtype == (torch.bfloat16 if weight.dim() > 1 else torch.float32)
        assert torch.isfinite(gradient).all()
