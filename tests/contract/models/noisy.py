"""Batch norm and dropout on both sides of every cut. In double precision, where it is `precise`.

No bias in front of a batch norm: its gradient is nothing but rounding, which Adam enlarges.
"""

import torch
from torch import Tensor, nn


def model(precise: bool = True) -> nn.Module:
    layers = [nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.25)]
    layers += [
        nn.Linear(8, 7, bias=False),
        nn.Dropout(0.25),
        nn.BatchNorm1d(7),
        nn.Tanh(),
        nn.Linear(7, 4),
    ]
    made = nn.Sequential(*layers)
    return made.double() if precise else made


def data(precise: bool = True) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    inputs = torch.randn(70, 6, dtype=torch.float64 if precise else torch.float32)
    targets = torch.randint(4, (70,))
    return (inputs[:58], targets[:58]), (inputs[58:], targets[58:])
