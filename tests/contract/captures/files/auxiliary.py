"""A second classifier that is there in training alone, as in GoogLeNet."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Auxiliary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.body = nn.Linear(6, 8), nn.Linear(8, 8)
        self.head, self.second = nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, x: Tensor):
        early = self.stem(x).relu()
        late = self.head(self.body(early).relu())
        if self.training:
            return late, self.second(early)
        return late


def model() -> nn.Module:
    return Auxiliary()


def example(n: int):
    return torch.randn(n, 6), torch.randint(3, (n,))


def loss(output, target):
    if isinstance(output, tuple):
        return sum(functional.cross_entropy(each, target) for each in output)
    return functional.cross_entropy(output, target)
