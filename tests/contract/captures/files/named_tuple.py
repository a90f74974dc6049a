"""A recurrent tagger that returns a named tuple."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class Tags(NamedTuple):
    tags: Tensor
    state: tuple[Tensor, Tensor]


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.tags = nn.Embedding(20, 8), nn.Linear(12, 5)
        self.recurrent = nn.LSTM(8, 6, batch_first=True, bidirectional=True)

    def forward(self, text: Tensor) -> Tags:
        x, state = self.recurrent(self.words(text))
        return Tags(self.tags(x), state)


def model() -> nn.Module:
    return Tagger()


def example(n: int):
    return torch.randint(20, (n, 7)), torch.randint(5, (n, 7))


def loss(output, target):
    return functional.cross_entropy(output.tags.flatten(0, 1), target.flatten())
