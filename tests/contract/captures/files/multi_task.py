"""Several inputs by name, several outputs by name, a loss of their own."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class MultiTask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ages, self.words = nn.Linear(4, 8), nn.Embedding(20, 8)
        self.body = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 8))
        self.kind, self.price = nn.Linear(8, 3), nn.Linear(8, 1)

    def forward(self, ages: Tensor, words: Tensor, weight: Tensor) -> dict[str, Tensor]:
        x = self.body(torch.cat([self.ages(ages), self.words(words).mean(1)], 1))
        return {"kind": self.kind(x), "price": self.price(x).squeeze(1) * weight}


def model() -> nn.Module:
    return MultiTask()


def example(n: int):
    inputs = {"ages": torch.rand(n, 4), "words": torch.randint(20, (n, 5)), "weight": torch.rand(n)}
    return inputs, {"kind": torch.randint(3, (n,)), "price": torch.rand(n)}


def loss(output, target):
    kind = functional.cross_entropy(output["kind"], target["kind"])
    return kind + functional.mse_loss(output["price"], target["price"])
