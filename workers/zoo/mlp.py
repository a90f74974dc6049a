"""Multilayer perceptron for 8x8 handwritten digits."""

import torch
from torch import Tensor, nn

DATA = "digits"


def model() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.rand(batch, 1, 8, 8), torch.randint(10, (batch,))
