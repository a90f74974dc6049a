"""Mixing by Fourier transforms: complex numbers inside."""

import torch
from torch import Tensor, nn


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 8, 2) * 0.1)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        spectrum = torch.fft.rfft(x, dim=1, norm="ortho") * torch.view_as_complex(self.weight)
        return self.linear(x + torch.fft.irfft(spectrum, n=x.shape[1], dim=1, norm="ortho")).relu()


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), Mixer(), Mixer(), nn.Flatten(), nn.Linear(48, 3))


def example(n: int):
    return torch.randn(n, 6, 3), torch.randint(3, (n,))
