"""Quantised weights whose gradient is passed straight through."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return torch.round(x * 8) / 8

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return gradient


class Quantised(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, Rounded.apply(self.weight), self.bias)


def model() -> nn.Module:
    return nn.Sequential(Quantised(6, 8), nn.ReLU(), Quantised(8, 8), nn.ReLU(), Quantised(8, 3))


def example(n: int):
    return torch.randn(n, 6), torch.randint(3, (n,))
