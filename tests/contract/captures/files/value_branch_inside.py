"""One block of a model looks at its values; the others are cut all the same."""

import torch
from torch import Tensor, nn


class Clipped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        norm = x.norm()
        return x / norm if norm > 10 else x


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.blocks = nn.ModuleList([Clipped(), Clipped()])

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x).relu()
        return self.last(x)


def model() -> nn.Module:
    return Outer()


def example(n: int):
    return torch.randn(n, 6), torch.randint(3, (n,))
