"""Four layers that wait in place of computing, so that more ranks than cores are as fast as devices
of their own: what they send is real. There is one cut into four, as profilers count no waiting."""

import time

import torch
from torch import Tensor, nn

WIDTH, DEPTH = 2560, 4
FORWARD, BACKWARD = 0.016, 0.032
"""Seconds of each layer, whatever the batch."""


class Waiting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor) -> Tensor:
        time.sleep(FORWARD)
        return x * weight

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor]:
        time.sleep(BACKWARD)
        return gradient, gradient.sum()


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = Waiting.apply(x, self.weight)
        return result


def model() -> nn.Module:
    return nn.Sequential(*(Layer() for _ in range(DEPTH)))


def loss(output: Tensor, target: Tensor) -> Tensor:
    return (output.mean(1) - target).square().mean()


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.rand(batch, WIDTH), torch.rand(batch)
