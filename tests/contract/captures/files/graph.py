"""A graph network: sums over neighbours by index."""

import torch
from torch import Tensor, nn


class Convolution(nn.Module):
    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.own, self.others = nn.Linear(width, out), nn.Linear(width, out)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        start, end = edges
        told = self.others(x)[:, start]
        return self.own(x) + torch.zeros_like(self.own(x)).index_add(1, end, told)


class Graph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("edges", torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]))
        self.first, self.second, self.head = Convolution(4, 8), Convolution(8, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x, self.edges).relu()
        x = self.second(x, self.edges).relu()
        return self.head(x.mean(1))


def model() -> nn.Module:
    return Graph()


def example(n: int):
    return torch.randn(n, 5, 4), torch.randint(3, (n,))
