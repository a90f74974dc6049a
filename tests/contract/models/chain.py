"""A chain in double precision, so that equal means equal to twelve digits."""

import torch
from torch import Tensor, nn


def model() -> nn.Module:
    layers = [nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 7), nn.Tanh(), nn.Linear(7, 4)]
    return nn.Sequential(*layers).double()


def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    inputs = torch.randn(70, 6, dtype=torch.float64)
    targets = torch.randint(4, (70,))
    return (inputs[:58], targets[:58]), (inputs[58:], targets[58:])
