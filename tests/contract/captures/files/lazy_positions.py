"""A cache that the first forward fills, and types that are asked for."""

import torch
from torch import Tensor, nn


class Positions(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, self.cache = width, None

    def forward(self, x: Tensor) -> Tensor:
        if self.cache is None or self.cache.shape[0] != x.shape[1]:
            angles = torch.arange(x.shape[1])[:, None] / 10 ** torch.linspace(0, 1, self.width // 2)
            self.cache = torch.cat([angles.sin(), angles.cos()], 1)
        return x + self.cache.to(x.dtype)


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(20, 8), Positions(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, text: Tensor) -> Tensor:
        x = self.positions(self.words(text))
        mixed, _ = self.attention(x, x, x, need_weights=False)
        return self.head(self.norm(x + mixed).mean(dim=1))


def model() -> nn.Module:
    return Reader()


def example(n: int):
    return torch.randint(20, (n, 6)), torch.randint(4, (n,))
