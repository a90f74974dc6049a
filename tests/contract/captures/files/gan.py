"""A generator and its judge in one model, with a loss of both."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Gan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))
        self.judge = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, noise: Tensor, real: Tensor) -> dict[str, Tensor]:
        made = self.generator(noise)
        return {"real": self.judge(real), "made": self.judge(made), "picture": made}


def model() -> nn.Module:
    return Gan()


def example(n: int):
    return {"noise": torch.randn(n, 4), "real": torch.randn(n, 6)}, torch.ones(n, 1)


def loss(output, target):
    real = functional.binary_cross_entropy_with_logits(output["real"], target)
    return real + functional.binary_cross_entropy_with_logits(output["made"], 1 - target)
