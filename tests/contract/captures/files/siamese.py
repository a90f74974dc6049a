"""One encoder for both inputs."""

import torch
from torch import Tensor, nn


class Siamese(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8))
        self.head = nn.Linear(8, 2)

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        return self.head((self.encoder(one) - self.encoder(other)).abs())


def model() -> nn.Module:
    return Siamese()


def example(n: int):
    return (torch.randn(n, 6), torch.randn(n, 6)), torch.randint(2, (n,))
