"""A language model of four LSTM layers of 256 units over 24 words out of 5,000."""

import torch
from torch import Tensor, nn

WORDS, WIDTH, LENGTH = 5000, 256, 24


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


def model() -> nn.Module:
    return nn.Sequential(
        nn.Embedding(WORDS, WIDTH), *(Layer() for _ in range(4)), nn.Linear(WIDTH, WORDS)
    )


def loss(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.randint(WORDS, (batch, LENGTH)), torch.randint(WORDS, (batch, LENGTH))
