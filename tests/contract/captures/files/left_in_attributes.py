"""Blocks leave a loss of their own in an attribute, which the model reads and sums."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = nn.Linear(8, 8), nn.BatchNorm1d(8)
        self.own_loss: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        made = torch.tanh(self.norm(self.inner(x)))
        self.own_loss = made.pow(2).mean()
        return x + made


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(4)))
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor):
        scores = self.head(self.blocks(x))
        if not self.training:
            return scores
        return scores, torch.stack([block.own_loss for block in self.blocks]).sum()


def model() -> nn.Module:
    return Model()


def example(n: int):
    return torch.randn(n, 8), torch.randint(3, (n,))


def loss(output, target: Tensor) -> Tensor:
    if isinstance(output, Tensor):
        return functional.cross_entropy(output, target)
    scores, own = output
    return functional.cross_entropy(scores, target) + 0.1 * own
