"""A contrastive model that returns its temperature, a parameter."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Contrastive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5))
        self.right = nn.Sequential(nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 5))
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def forward(self, left: Tensor, right: Tensor):
        one, other = (
            functional.normalize(self.left(left), dim=1),
            functional.normalize(self.right(right), dim=1),
        )
        return one, other, self.temperature


def model() -> nn.Module:
    return Contrastive()


def example(n: int):
    return (torch.randn(n, 6), torch.randn(n, 7)), torch.zeros(n)


def loss(output, target):
    one, other, temperature = output
    scores = one @ other.T * temperature.exp()
    return functional.cross_entropy(scores, torch.arange(len(scores)))
