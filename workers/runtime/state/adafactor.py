"""Adafactor: of a matrix's squared gradients the sums of rows and columns alone are kept."""

import torch
from torch import Tensor

from workers.runtime.state.optimizers import Tensors, shrunk

FALL, LEAST, MOST = -0.8, 1e-3, 1.0
"""The power by which older gradients lose weight, the least size of a weight that rates are
relative to, and the most of an update before it is scaled down (torch.optim.Adafactor's)."""


class Adafactor:
    """Rates are relative to the size of the weights (Shazeer and Stern, ICML 2018, algorithms 4 and
    5, in torch's form). Tensors of more than two dimensions are matrices of their last two."""

    def __init__(self, learning_rate: float, weight_decay: float = 0.0) -> None:
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.steps = 0
        self.rows: Tensors = []
        self.columns: Tensors = []
        self.square: Tensors = []

    def update(
        self, weights: Tensors, gradients: Tensors, in_place: bool, factor: float = 1.0
    ) -> Tensors:
        if not self.rows:
            self.rows = [_sums(weight, -1) for weight in weights]
            self.columns = [_sums(weight, -2) for weight in weights]
            self.square = [torch.zeros_like(w) if w.dim() < 2 else _none(w) for w in weights]
        self.steps += 1
        rate = self.learning_rate * factor
        sizes = [max(LEAST, _root_mean_square(weight)) for weight in weights]
        weights = shrunk(weights, 1 - rate * self.weight_decay, in_place)
        step = min(rate, 1 / self.steps**0.5)
        for number, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            change = self._variance(number, gradient, torch.finfo(weight.dtype).eps)
            change.rsqrt_().mul_(gradient)
            too_much = max(1.0, _root_mean_square(change) / MOST)
            weight.add_(change, alpha=-step * sizes[number] / too_much)
        return weights

    def _variance(self, number: int, gradient: Tensor, eps: float) -> Tensor:
        """What is known of the squared gradients, in a tensor of its own."""
        new = float(self.steps) ** FALL
        if gradient.dim() < 2:
            self.square[number].lerp_(gradient * gradient, new)
            return self.square[number].clamp(min=eps * eps)
        rows, columns = self.rows[number], self.columns[number]
        rows.lerp_(_mean_square(gradient, -1), new)
        columns.lerp_(_mean_square(gradient, -2), new)
        found = rows @ columns
        found.div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps))
        return found.clamp_(min=eps * eps)

    @property
    def state(self) -> dict[str, Tensors]:
        """Of each weight either the square or the others; the rest has no numbers."""
        if not self.rows:
            return {}
        return {"row": self.rows, "column": self.columns, "square": self.square}

    def load_state(self, state: dict[str, Tensors], updates: int) -> None:
        self.rows, self.columns = state.get("row", []), state.get("column", [])
        self.square = state.get("square", [])
        self.steps = updates if self.rows else 0


def _sums(weight: Tensor, dimension: int) -> Tensor:
    if weight.dim() < 2:
        return _none(weight)
    return torch.zeros_like(weight.narrow(dimension, 0, 1)).contiguous()


def _none(weight: Tensor) -> Tensor:
    return weight.new_zeros(0)


def _mean_square(gradient: Tensor, dimension: int) -> Tensor:
    norm: Tensor = torch.norm(gradient, dim=dimension, keepdim=True)
    return norm.square_().div_(gradient.size(dimension))


def _root_mean_square(tensor: Tensor) -> float:
    size: float = max(tensor.numel(), 1) ** 0.5
    return float(tensor.norm(2).item()) / size
