"""A vocabulary of 20,000 words and scores for each of them: 10.3 million weights in two layers."""

import torch
from torch import Tensor, nn

WORDS, WIDTH, LENGTH = 20_000, 256, 8


class Vocabulary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.mix = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.act, self.scores = nn.Tanh(), nn.Linear(WIDTH, WORDS)

    def forward(self, words: Tensor) -> Tensor:
        return self.scores(self.act(self.mix(self.words(words).mean(1))))


def model() -> nn.Module:
    return Vocabulary()


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.randint(WORDS, (batch, LENGTH)), torch.randint(WORDS, (batch,))


def loss(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(output, target)
