"""A submodule warms up: its strength depends on how often it was called."""

import torch
from torch import Tensor, nn


class WarmUp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls, self.linear = 0, nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.calls += 1
        return x + min(1.0, self.calls / 10) * self.linear(x).tanh()


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), WarmUp(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))


def example(n: int):
    return torch.randn(n, 6), torch.randint(3, (n,))
