"""Two inputs by position, joined in the middle."""

import torch
from torch import Tensor, nn


class TwoTowers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8))
        self.right = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8))
        self.head = nn.Linear(16, 3)

    def forward(self, picture: Tensor, text: Tensor) -> Tensor:
        return self.head(torch.cat([self.left(picture), self.right(text)], 1))


def model() -> nn.Module:
    return TwoTowers()


def example(n: int):
    return (torch.randn(n, 6), torch.randn(n, 4)), torch.randint(3, (n,))
