"""Inputs and targets: one tensor, several in order, or several by name; samples first."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True, slots=True)
class Answers:
    """Targets with the inputs that they belong to, for a loss that reads both."""

    target: "Samples"
    inputs: "Samples"


Samples = Tensor | tuple[Tensor, ...] | dict[str, Tensor] | Answers
Batch = tuple[Samples, Samples]


def target_of(samples: Samples) -> Samples:
    """The targets alone."""
    return samples.target if isinstance(samples, Answers) else samples


def tensors(samples: Samples) -> tuple[Tensor, ...]:
    """Its tensors in their order."""
    if isinstance(samples, Tensor):
        return (samples,)
    if isinstance(samples, Answers):
        return (*tensors(samples.target), *tensors(samples.inputs))
    return tuple(samples.values() if isinstance(samples, dict) else samples)


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors in a value of any structure."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def dense(tensor: Tensor) -> Tensor:
    """The same values, each in its place."""
    return tensor.to_dense() if tensor.layout is torch.sparse_coo else tensor


def mapped(samples: Samples, change: Callable[[Tensor], Tensor]) -> Samples:
    """The same structure with every tensor changed."""
    if isinstance(samples, Tensor):
        return change(samples)
    if isinstance(samples, Answers):
        return Answers(mapped(samples.target, change), mapped(samples.inputs, change))
    if isinstance(samples, dict):
        return {name: change(tensor) for name, tensor in samples.items()}
    return tuple(change(tensor) for tensor in samples)


def is_samples(value: Any) -> bool:
    """Whether `value` is of this form at all, with one tensor at least."""
    if isinstance(value, dict):
        return bool(value) and all(
            isinstance(name, str) and isinstance(each, Tensor) for name, each in value.items()
        )
    if isinstance(value, tuple | list):
        return bool(value) and all(isinstance(each, Tensor) for each in value)
    return isinstance(value, Tensor)


def num_samples(samples: Samples) -> int:
    """How many samples every tensor holds; -1 where they differ, 0 for a scalar."""
    sizes = {len(tensor) if tensor.dim() else 0 for tensor in tensors(samples)}
    return sizes.pop() if len(sizes) == 1 else -1


def positional(model: nn.Module, inputs: Samples) -> nn.Module:
    """`model`, changed to take its inputs by position where they have names."""
    if not isinstance(inputs, dict):
        return model
    names, base = tuple(inputs), type(model)

    def forward(self: nn.Module, *given: Tensor) -> Any:
        return base.forward(self, **dict(zip(names, given, strict=True)))

    model.__class__ = type(base.__name__, (base,), {"forward": forward, "__module__": __name__})
    return model
