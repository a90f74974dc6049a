"""One optimizer for the weights of a stage, some of which have a rate or a decay of their own."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from torch import Tensor

from backend.planning.optimizers import optimizer_named
from backend.profiles.state_precision import StatePrecisionKind
from backend.runs.request.groups import settings_of
from backend.runs.request.optimizer_spec import OptimizerSpec
from workers.runtime.state.adafactor import Adafactor
from workers.runtime.state.optimizers import SGD, Adam, Lion, Momentum, Optimizer, Tensors
from workers.runtime.state.rounding import RoundedUpdates


def optimizer_of(
    spec: OptimizerSpec, rate: float | None = None, weight_decay: float | None = None
) -> Optimizer:
    """A fresh one for weights with this rate and decay, where they are not those of `spec`."""
    kind = optimizer_named(spec.name)
    rate = spec.learning_rate if rate is None else rate
    weight_decay = spec.weight_decay if weight_decay is None else weight_decay
    betas, eps = spec.betas or kind.betas or (0.0, 0.0), spec.eps or kind.eps or 0.0
    match spec.name:
        case "sgd":
            return SGD(rate, weight_decay)
        case "momentum":
            return Momentum(rate, spec.momentum, weight_decay)
        case "adam":
            return Adam(rate, weight_decay, betas, eps)
        case "adamw":
            return Adam(rate, weight_decay, betas, eps, decoupled=True)
        case "adafactor":
            return Adafactor(rate, weight_decay)
        case "lion":
            return Lion(rate, weight_decay, betas)


def grouped_optimizer(
    spec: OptimizerSpec, weights: Sequence[tuple[str, int]], kind: StatePrecisionKind
) -> Optimizer:
    """For weights with these names in the model and numbers of dimensions, whose state is kept as
    `kind` says."""
    places: dict[tuple[float, float], list[int]] = {}
    for place, (name, dimensions) in enumerate(weights):
        places.setdefault(settings_of(spec, name, dimensions), []).append(place)
    usual = spec.learning_rate, spec.weight_decay
    made = [_made(partial(optimizer_of, spec, *each), kind) for each in places or (usual,)]
    if len(made) == 1:
        return made[0]
    return Grouped(dict(zip(made, places.values(), strict=True)))


def _made(rule: Callable[[], Optimizer], kind: StatePrecisionKind) -> Optimizer:
    return RoundedUpdates(rule, kind) if kind.is_rounded else rule()


class Grouped:
    """Several optimizers, each of the weights at its places."""

    def __init__(self, groups: Mapping[Optimizer, Sequence[int]]) -> None:
        self._groups = groups

    def update(
        self, weights: Tensors, gradients: Tensors, in_place: bool, factor: float = 1.0
    ) -> Tensors:
        new: dict[int, Tensor] = {}
        for rule, places in self._groups.items():
            own, found = _at(weights, places), _at(gradients, places)
            new |= dict(zip(places, rule.update(own, found, in_place, factor), strict=True))
        return [new[place] for place in range(len(weights))]

    @property
    def state(self) -> dict[str, Tensors]:
        found: dict[str, dict[int, Tensor]] = {}
        for rule, places in self._groups.items():
            for kind, values in rule.state.items():
                found.setdefault(kind, {}).update(zip(places, values, strict=True))
        return {kind: [each[place] for place in sorted(each)] for kind, each in found.items()}

    def load_state(self, state: dict[str, Tensors], updates: int) -> None:
        for rule, places in self._groups.items():
            own = {kind: _at(values, places) for kind, values in state.items() if values}
            rule.load_state(own, updates)


def _at(tensors: Tensors, places: Sequence[int]) -> Tensors:
    return [tensors[place] for place in places]
