"""Which weights are updated at which rate and with which weight decay, by their names."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from math import isfinite
from typing import Literal

from backend.errors import InvalidInput
from backend.planning.optimizers import optimizer_named
from backend.runs.request.optimizer_spec import OptimizerSpec, ParameterGroup

HINT = "A group is NAMES=RATE or NAMES=RATE,DECAY: for example head=10 or *.bias=2,0."


def read_groups(texts: Iterable[str]) -> tuple[ParameterGroup, ...]:
    """Of texts such as "head=10" and "*.bias=2,0": names, factor of the rate, weight decay. Raises
    `InvalidInput`."""
    return tuple(_group(text) for text in texts if text.strip())


def groups_text(groups: Sequence[ParameterGroup]) -> str:
    """As `read_groups` reads it, with ";" between them."""
    return "; ".join(
        f"{g.names}={g.rate:g}" + ("" if g.weight_decay is None else f",{g.weight_decay:g}")
        for g in groups
    )


def check_group(group: ParameterGroup) -> None:
    """Raises `InvalidInput`."""
    decay = 0.0 if group.weight_decay is None else group.weight_decay
    if not (group.names and group.rate >= 0 and decay >= 0 and isfinite(group.rate + decay)):
        raise InvalidInput(
            f"the group {groups_text([group])} has no names, or numbers below 0", HINT
        )


def with_usual_decay(spec: OptimizerSpec) -> OptimizerSpec:
    """With what weight decay is for, where there is some and that was left open."""
    return _decayed(spec, "matrices" if optimizer_named(spec.name).spares_vectors else "all")


def with_decay_as_before(spec: OptimizerSpec) -> OptimizerSpec:
    """The same of a run that was stored before anybody asked what weight decay is for."""
    return _decayed(spec, "all")


def _decayed(spec: OptimizerSpec, what: Literal["all", "matrices"]) -> OptimizerSpec:
    return replace(spec, decayed=what) if spec.weight_decay and not spec.decayed else spec


def settings_of(spec: OptimizerSpec, name: str, dimensions: int) -> tuple[float, float]:
    """The learning rate and the weight decay of the weight called `name`."""
    group = next((g for g in spec.groups if has(g, name)), ParameterGroup(name))
    if group.weight_decay is not None:
        return spec.learning_rate * group.rate, group.weight_decay
    is_spared = spec.decayed == "matrices" and is_norm_or_bias(name, dimensions)
    return spec.learning_rate * group.rate, 0.0 if is_spared else spec.weight_decay


def has(group: ParameterGroup, name: str) -> bool:
    """Whether the weight is of the group."""
    return fnmatchcase(name, group.names) or fnmatchcase(name, f"{group.names}.*")


def is_norm_or_bias(name: str, dimensions: int) -> bool:
    """Of fewer than two dimensions, or called so."""
    return dimensions < 2 or name.rpartition(".")[2] == "bias"


def _group(text: str) -> ParameterGroup:
    names, _, numbers = text.rpartition("=")
    rate, _, decay = numbers.partition(",")
    try:
        group = ParameterGroup(names.strip(), float(rate), float(decay) if decay.strip() else None)
    except ValueError:
        raise InvalidInput(f"{text.strip()!r} is not a group of weights", HINT) from None
    check_group(group)
    return group
