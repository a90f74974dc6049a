"""Optimizers as functions: (weights, gradients) -> new weights, their state kept inside.

With `in_place` the given tensors are changed and returned; nobody may await them then.
The formulas are those of torch.optim, and Lion's. Weight decay meets the
weights that are updated, the newest, whichever version the gradients are of. What a rule computes
on the way is there of a few weights at a time (`portions`).
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

Tensors = list[Tensor]

PORTION = 4 * 2**20
"""Bytes of weights that are updated together: enough for a GPU's kernels, and little beside the
gradient of one large layer, for which memory is planned."""


class Optimizer(Protocol):
    """One optimizer of one stage."""

    def update(
        self, weights: Tensors, gradients: Tensors, in_place: bool, factor: float = 1.0
    ) -> Tensors:
        """The weights after one update at `factor` times the learning rate; gradients are not
        changed."""
        ...

    @property
    def state(self) -> dict[str, Tensors]:
        """What it carries from update to update, by kind and in the order of the weights;
        nothing before the first one."""
        ...

    def load_state(self, state: dict[str, Tensors], updates: int) -> None:
        """Go on as the optimizer that had this `state` after so many updates."""
        ...


class SGD:
    """w -= lr * (g + decay * w)."""

    def __init__(self, learning_rate: float, weight_decay: float = 0.0) -> None:
        self.learning_rate, self.weight_decay = learning_rate, weight_decay

    def update(
        self, weights: Tensors, gradients: Tensors, in_place: bool, factor: float = 1.0
    ) -> Tensors:
        rate, new = -self.learning_rate * factor, Tensors()
        for part in portions(weights):
            found = _decayed(weights[part], gradients[part], self.weight_decay)
            new += _moved(weights[part], found, rate, in_place)
        return new

    @property
    def state(self) -> dict[str, Tensors]:
        return {}

    def load_state(self, state: dict[str, Tensors], updates: int) -> None:
        """It has none."""


class Momentum:
    """v = mu * v + g + decay * w; w -= lr * v (Sutskever et al., ICML 2013, in torch's form)."""

    def __init__(self, learning_rate: float, momentum: float, weight_decay: float = 0.0) -> None:
        self.learning_rate, self.momentum = learning_rate, momentum
        self.weight_decay = weight_decay
        self.velocity: Tensors = []

    def update(
        self, weights: Tensors, gradients: Tensors, in_place: bool, factor: float = 1.0
    ) -> Tensors:
        self.velocity = self.velocity or _zeros(weights)
        weights = weights if in_place else [weight.clone() for weight in weights]
        torch._fused_sgd_(  # one pass over the memory, which is what an update waits for
            weights,
            gradients,
            self.velocity,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            lr=self.learning_rate * factor,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )
        return weights

    @property
    def state(self) -> dict[str, Tensors]:
        return {"velocity": self.velocity} if self.velocity else {}

    def load_state(self, state: dict[str, Tensors], updates: int) -> None:
        self.velocity = state.get("velocity", [])


class Adam:
    """Adam with bias correction (Kingma and Ba, ICLR 2015, algorithm 1). `decoupled` takes
    lr * decay * w off the weights instead (AdamW: Loshchilov and Hutter, ICLR 2019)."""

    def __init__(
        self,
        learning_rate: float,
        weight_decay: float,
        betas: tuple[float, float],
        eps: float,
        decoupled: bool = False,
    ) -> None:
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.betas, self.eps, self.decoupled = betas, eps, decoupled
        self.steps = 0
        self.mean: Tensors = []
        self.square: Tensors = []

    def update(
        self, weights: Tensors, gradients: Tensors, in_place: bool, factor: float = 1.0
    ) -> Tensors:
        self.mean, self.square = self.mean or _zeros(weights), self.square or _zeros(weights)
        self.steps += 1
        rate, new = self.learning_rate * factor, Tensors()
        for part in portions(weights):
            new += self._portion(part, weights[part], gradients[part], in_place, rate)
        return new

    def _portion(
        self, part: slice, weights: Tensors, gradients: Tensors, in_place: bool, rate: float
    ) -> Tensors:
        if self.decoupled:
            weights = shrunk(weights, 1 - rate * self.weight_decay, in_place)
        else:
            gradients = _decayed(weights, gradients, self.weight_decay)
        mean, scale = self.mean[part], self._follow(part, gradients)
        step = -rate / (1 - self.betas[0] ** self.steps)
        if in_place or self.decoupled:
            torch._foreach_addcdiv_(weights, mean, scale, step)
            return weights
        return list(torch._foreach_addcdiv(weights, mean, scale, step))

    def _follow(self, part: slice, gradients: Tensors) -> Tensors:
        """The root of the mean square by which the mean gradient is divided."""
        mean, square, (first, second) = self.mean[part], self.square[part], self.betas
        torch._foreach_lerp_(mean, gradients, 1 - first)
        torch._foreach_mul_(square, second)
        torch._foreach_addcmul_(square, gradients, gradients, 1 - second)
        scale = list(torch._foreach_sqrt(square))
        torch._foreach_div_(scale, (1 - second**self.steps) ** 0.5)
        torch._foreach_add_(scale, self.eps)
        return scale

    @property
    def state(self) -> dict[str, Tensors]:
        return {"mean": self.mean, "square": self.square} if self.mean else {}

    def load_state(self, state: dict[str, Tensors], updates: int) -> None:
        self.mean, self.square = state.get("mean", []), state.get("square", [])
        self.steps = updates if self.mean else 0


class Lion:
    """w -= lr * (sign(b1 * m + (1 - b1) * g) + decay * w); m = b2 * m + (1 - b2) * g (Chen et
    al., NeurIPS 2023, algorithm 2)."""

    def __init__(
        self, learning_rate: float, weight_decay: float, betas: tuple[float, float]
    ) -> None:
        self.learning_rate, self.weight_decay, self.betas = learning_rate, weight_decay, betas
        self.mean: Tensors = []

    def update(
        self, weights: Tensors, gradients: Tensors, in_place: bool, factor: float = 1.0
    ) -> Tensors:
        self.mean = self.mean or _zeros(weights)
        rate, new = self.learning_rate * factor, Tensors()
        (first, second), share = self.betas, 1 - rate * self.weight_decay
        for part in portions(weights):
            direction = list(torch._foreach_lerp(self.mean[part], gradients[part], 1 - first))
            torch._foreach_sign_(direction)
            torch._foreach_lerp_(self.mean[part], gradients[part], 1 - second)
            new += _moved(shrunk(weights[part], share, in_place), direction, -rate, in_place=True)
        return new

    @property
    def state(self) -> dict[str, Tensors]:
        return {"mean": self.mean} if self.mean else {}

    def load_state(self, state: dict[str, Tensors], updates: int) -> None:
        self.mean = state.get("mean", [])


def portions(weights: Tensors) -> Iterator[slice]:
    """The places of weights that follow each other, of at most `PORTION` bytes together or one that
    is larger."""
    first, size = 0, 0
    for place, weight in enumerate(weights):
        if place > first and size + weight.nbytes > PORTION:
            yield slice(first, place)
            first, size = place, 0
        size += weight.nbytes
    if weights:
        yield slice(first, len(weights))


def _moved(weights: Tensors, direction: Tensors, rate: float, in_place: bool) -> Tensors:
    if in_place:
        torch._foreach_add_(weights, direction, alpha=rate)
        return weights
    return list(torch._foreach_add(weights, direction, alpha=rate))


def shrunk(weights: Tensors, share: float, in_place: bool) -> Tensors:
    """`share` of the weights, in their place or in tensors of their own."""
    if in_place:
        torch._foreach_mul_(weights, share)
        return weights
    return list(torch._foreach_mul(weights, share))


def _decayed(weights: Tensors, gradients: Tensors, weight_decay: float) -> Tensors:
    if not weight_decay:
        return gradients
    return list(torch._foreach_add(gradients, weights, alpha=weight_decay))


def _zeros(weights: Sequence[Tensor]) -> Tensors:
    return [torch.zeros_like(weight) for weight in weights]
