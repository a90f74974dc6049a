"""Small models for the tests of where a model may be cut."""

import torch
from torch import nn

from workers.definitions.layering import layered
from workers.definitions.layers import LayeredModel


def names(model: LayeredModel) -> list[str]:
    return [layer.name for layer in model.layers]


def of(model: nn.Module, *shape: int) -> LayeredModel:
    return layered(model, torch.rand(*(shape or (3, 4))))


class Linears(nn.Module):
    """Three linear layers that subclasses of forward may use."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))
