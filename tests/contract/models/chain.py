"""A chain in double precision where it is `precise`, so that equal means equal to twelve digits."""

import torch
from torch import Tensor, nn


def model(precise: bool = True) -> nn.Module:
    layers = [nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 7), nn.Tanh(), nn.Linear(7, 4)]
    made = nn.Sequential(*layers)
    return made.double() if precise else made


def data(precise: bool = True) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    inputs = torch.randn(70, 6, dtype=torch.float64 if precise else torch.float32)
    targets = torch.randint(4, (70,))
    return (inputs[:58], targets[:58]), (inputs[58:], targets[58:])
