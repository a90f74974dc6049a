"""Inputs and targets: one tensor, several in order, or several by name; samples first."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

Samples = Tensor | tuple[Tensor, ...] | dict[str, Tensor]
Batch = tuple[Samples, Samples]


def tensors(samples: Samples) -> tuple[Tensor, ...]:
    """Its tensors in their order."""
    if isinstance(samples, Tensor):
        return (samples,)
    return tuple(samples.values() if isinstance(samples, dict) else samples)


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors in a value of any structure."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def mapped(samples: Samples, change: Callable[[Tensor], Tensor]) -> Samples:
    """The same structure with every tensor changed."""
    if isinstance(samples, Tensor):
        return change(samples)
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
