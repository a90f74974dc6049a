"""A chain in double precision, so that equal means equal to twelve digits."""

import torch
from torch import Tensor, nn


def model() -> nn.Module:
    layers = [nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 7), nn.Tanh(), nn.Linear(7, 4)]
    return nn.Sequential(*layers).double()


def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    inputs = torch.randn(34, 6, dtype=torch.float64)
    targets = torch.randint(4, (34,))
    return (inputs[:25], targets[:25]), (inputs[25:], targets[25:])
