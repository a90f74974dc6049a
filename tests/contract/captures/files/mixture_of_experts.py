"""Each word goes to one expert, chosen by its value."""

import torch
from torch import Tensor, nn


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 3)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.gate(x).softmax(-1)
        best, chosen = scores.max(-1)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mine = chosen == number
            if mine.any():
                result[mine] = expert(x[mine]) * best[mine].unsqueeze(-1)
        return result


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mix, self.experts = nn.LayerNorm(8), nn.Linear(8, 8), Experts()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mix(self.norm(x)).tanh()
        return x + self.experts(x)


class Mixture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(30, 8), nn.Linear(8, 30)
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, text: Tensor) -> Tensor:
        return self.head(self.blocks(self.words(text)))


def model() -> nn.Module:
    return Mixture()


def example(n: int):
    text = torch.randint(30, (n, 9))
    return text[:, :-1], text[:, 1:]
