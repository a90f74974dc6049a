"""Batch norm and dropout on both sides of every cut. In double precision.

No bias in front of a batch norm: its gradient is nothing but rounding, which Adam enlarges.
"""

import torch
from torch import Tensor, nn


def model() -> nn.Module:
    layers = [nn.Linear(6, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.25)]
    layers += [
        nn.Linear(8, 7, bias=False),
        nn.Dropout(0.25),
        nn.BatchNorm1d(7),
        nn.Tanh(),
        nn.Linear(7, 4),
    ]
    return nn.Sequential(*layers).double()


def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    inputs = torch.randn(70, 6, dtype=torch.float64)
    targets = torch.randint(4, (70,))
    return (inputs[:58], targets[:58]), (inputs[58:], targets[58:])
