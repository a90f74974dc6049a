"""A bag of words whose gradient is sparse."""

import torch
from torch import Tensor, nn


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(40, 8, mode="mean", sparse=True)
        self.words = nn.Embedding(40, 8, sparse=True)
        self.inner, self.last = nn.Linear(16, 8), nn.Linear(8, 3)

    def forward(self, text: Tensor) -> Tensor:
        x = torch.cat([self.bag(text), self.words(text).amax(1)], 1)
        return self.last(self.inner(x).relu())


def model() -> nn.Module:
    return Bag()


def example(n: int):
    return torch.randint(40, (n, 6)), torch.randint(3, (n,))
