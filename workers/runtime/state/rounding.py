"""State that is kept in fewer bits than updates are computed in.

An update is computed in float32 from what is kept, and what it leaves behind is rounded once, to
the nearest. With masters the weights that are updated are float32 themselves, and the weights that
the model computes with are rounded from them (Micikevicius et al., ICLR 2018, section 3.1).
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from backend.profiles.state_precision import HALF, StatePrecisionKind
from workers.runtime.compute.kept_weights import kept_weight
from workers.runtime.state.optimizers import Optimizer, Tensors

FULL = torch.float32
"""Of masters and of updates, where a weight is not finer itself."""


def rounded(weights: Mapping[str, Tensor], kind: StatePrecisionKind) -> dict[str, Tensor]:
    """First weights as `kind` keeps them."""
    return {name: kept_weight(weight, kind) for name, weight in weights.items()}


def masters(weights: Mapping[str, Tensor], kind: StatePrecisionKind) -> dict[str, Tensor] | None:
    """Those that `kind` keeps of these first weights: the tensors themselves where versions are
    others. None without."""
    if not kind.master:
        return None
    return {
        name: weight.to(_full(weight), copy=kept_weight(weight, kind) is weight)
        for name, weight in weights.items()
    }


class RoundedUpdates:
    """An optimizer that computes in float32, whatever weights, gradients and state are kept in.

    One weight after another, so that what is cast up is never there of all at once. `rule` makes
    a fresh optimizer for each.
    """

    def __init__(self, rule: Callable[[], Optimizer], kind: StatePrecisionKind) -> None:
        self._rule, self._is_half = rule, kind.state == HALF
        self._kept: list[dict[str, Tensor]] = []
        self._updates = 0

    def update(
        self, weights: Tensors, gradients: Tensors, in_place: bool, factor: float = 1.0
    ) -> Tensors:
        self._kept = self._kept or [{} for _ in weights]
        pairs = enumerate(zip(weights, gradients, strict=True))
        new = [self._one(n, weight, found, in_place, factor) for n, (weight, found) in pairs]
        self._updates += 1
        return new

    def _one(
        self, number: int, weight: Tensor, gradient: Tensor, in_place: bool, factor: float
    ) -> Tensor:
        full = _full(weight)
        exact = weight.to(full, copy=not in_place)
        rule, state = self._rule(), self._kept[number]
        rule.load_state({kind: [kept.to(full)] for kind, kept in state.items()}, self._updates)
        rule.update([exact], [gradient.to(full)], True, factor)
        self._kept[number] = {kind: self._as_kept(values[0]) for kind, values in rule.state.items()}
        return weight.copy_(exact) if in_place else exact.to(weight.dtype)

    def _as_kept(self, state: Tensor) -> Tensor:
        return state.bfloat16() if self._is_half else state

    @property
    def state(self) -> dict[str, Tensors]:
        kinds = self._kept[0] if self._kept else {}
        return {kind: [kept[kind] for kept in self._kept] for kind in kinds}

    def load_state(self, state: dict[str, Tensors], updates: int) -> None:
        self._updates = updates if state else 0
        count = max(map(len, state.values()), default=0)
        self._kept = [
            {kind: self._as_kept(values[number]) for kind, values in state.items()}
            for number in range(count)
        ]


def _full(weight: Tensor) -> torch.dtype:
    return torch.promote_types(weight.dtype, FULL)
