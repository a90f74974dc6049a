"""Lets a rank forget the weights that only other ranks train."""

from collections.abc import Iterable

import torch
from torch import nn


def release(own: Iterable[nn.Module], foreign: Iterable[nn.Module]) -> int:
    """Give back the memory of the parameters of `foreign` modules that no `own` module reads;
    the bytes. They stay in place, empty, so that the model keeps its names."""
    kept = {id(parameter) for module in own for parameter in module.parameters()}
    freed = 0
    for module in foreign:
        for parameter in module.parameters():
            if id(parameter) not in kept:
                freed += parameter.nbytes
                parameter.data = torch.empty(0, dtype=parameter.dtype, device=parameter.device)
    return freed
