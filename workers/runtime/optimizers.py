"""Update rules that give new weights: (weights, gradients) -> weights, state kept inside.

With `in_place` the given tensors are changed and returned; nobody may await them then.
The formulas are those of torch.optim with its default settings.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from backend.runs.spec import OptimizerSpec

Tensors = list[Tensor]

BETAS = (0.9, 0.999)
EPSILON = 1e-8
"""Adam's constants (Kingma and Ba, ICLR 2015, algorithm 1)."""


class Rule(Protocol):
    """One optimizer of one stage."""

    def update(self, weights: Tensors, gradients: Tensors, in_place: bool) -> Tensors:
        """The weights after one update; gradients are not changed."""
        ...


class SGD:
    """w -= lr * g."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def update(self, weights: Tensors, gradients: Tensors, in_place: bool) -> Tensors:
        return _moved(weights, gradients, -self.learning_rate, in_place)


class Momentum:
    """v = mu * v + g; w -= lr * v (Sutskever et al., ICML 2013, in torch's form)."""

    def __init__(self, learning_rate: float, momentum: float) -> None:
        self.learning_rate, self.momentum = learning_rate, momentum
        self.velocity: Tensors = []

    def update(self, weights: Tensors, gradients: Tensors, in_place: bool) -> Tensors:
        self.velocity = self.velocity or _zeros(weights)
        torch._foreach_mul_(self.velocity, self.momentum)
        torch._foreach_add_(self.velocity, gradients)
        return _moved(weights, self.velocity, -self.learning_rate, in_place)


class Adam:
    """Adam with bias correction (Kingma and Ba, ICLR 2015, algorithm 1)."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.steps = 0
        self.mean: Tensors = []
        self.square: Tensors = []

    def update(self, weights: Tensors, gradients: Tensors, in_place: bool) -> Tensors:
        self.mean, self.square = self.mean or _zeros(weights), self.square or _zeros(weights)
        self.steps += 1
        torch._foreach_lerp_(self.mean, gradients, 1 - BETAS[0])
        torch._foreach_mul_(self.square, BETAS[1])
        torch._foreach_addcmul_(self.square, gradients, gradients, 1 - BETAS[1])
        scale = torch._foreach_sqrt(self.square)
        torch._foreach_div_(scale, (1 - BETAS[1] ** self.steps) ** 0.5)
        torch._foreach_add_(scale, EPSILON)
        direction = torch._foreach_div(self.mean, scale)
        rate = self.learning_rate / (1 - BETAS[0] ** self.steps)
        return _moved(weights, list(direction), -rate, in_place)


def rule(spec: OptimizerSpec) -> Rule:
    """A fresh rule for one stage."""
    match spec.name:
        case "sgd":
            return SGD(spec.learning_rate)
        case "momentum":
            return Momentum(spec.learning_rate, spec.momentum)
        case "adam":
            return Adam(spec.learning_rate)


def _moved(weights: Tensors, direction: Tensors, rate: float, in_place: bool) -> Tensors:
    if in_place:
        torch._foreach_add_(weights, direction, alpha=rate)
        return weights
    return list(torch._foreach_add(weights, direction, alpha=rate))


def _zeros(weights: Sequence[Tensor]) -> Tensors:
    return [torch.zeros_like(weight) for weight in weights]
