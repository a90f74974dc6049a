"""The weights of a module in the precision that a training keeps them in."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from backend.profiles.state_precision import HALF, StatePrecisionKind


def kept_weight(weight: Tensor, kind: StatePrecisionKind) -> Tensor:
    """`weight` as `kind` keeps it: rounded, or itself. Biases and the scales of norms, which have
    one dimension, stay in float32: they are few, and norms compute with float32 scales alone where
    autocast leaves their inputs in float32. What is finer than float32 stays too."""
    is_matrix = weight.dim() > 1 and weight.dtype == torch.float32
    return weight.bfloat16() if kind.weight == HALF and is_matrix else weight


def keep_frozen(module: nn.Module, kind: StatePrecisionKind) -> None:
    """Round the weights of `module` that nobody trains, where they lie."""
    for weight in module.parameters():
        if not weight.requires_grad:
            weight.data = kept_weight(weight.data, kind)


@contextmanager
def as_kept(module: nn.Module, kind: StatePrecisionKind) -> Iterator[None]:
    """Inside, `module` has every weight as `kind` keeps it; afterwards its own again."""
    own = [
        (part._parameters, key, weight)
        for part in module.modules()
        for key, weight in part._parameters.items()
        if weight is not None and kept_weight(weight, kind) is not weight
    ]
    kept = {
        id(weight): nn.Parameter(kept_weight(weight.detach(), kind), weight.requires_grad)
        for _, _, weight in own
    }
    try:
        for holder, key, weight in own:
            holder[key] = kept[id(weight)]
        yield
    finally:
        for holder, key, weight in own:
            holder[key] = weight
