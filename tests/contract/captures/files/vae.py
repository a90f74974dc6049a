"""A variational autoencoder: three outputs, and a loss that reads the inputs."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.mean, self.width = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 4)
        self.decoder = nn.Sequential(
            nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 6)
        )

    def forward(self, x: Tensor, noise: Tensor):
        x = self.encoder(x).relu()
        mean, width = self.mean(x), self.width(x)
        return self.decoder(mean + noise * (0.5 * width).exp()), mean, width


def model() -> nn.Module:
    return Autoencoder()


def example(n: int):
    return (torch.randn(n, 6), torch.randn(n, 4)), torch.zeros(n)


def loss(output, target, inputs):
    made, mean, width = output
    distance = 1 + width - mean.square() - width.exp()
    return functional.mse_loss(made, inputs[0]) - 0.5 * distance.mean()
