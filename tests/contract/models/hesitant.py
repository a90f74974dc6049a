"""A chain whose parts wait for a random while: whatever depends on timing differs from run to run.
In double precision."""

import time

import torch
from torch import Tensor, fx, nn

WIDTH, SLOWEST = 6, 4_000_000  # nanoseconds


def hesitate(x: Tensor) -> Tensor:
    """The same, some time later: as the clock happens to stand."""
    time.sleep(time.perf_counter_ns() % SLOWEST / 1e9)
    return x


fx.wrap("hesitate")


class Hesitant(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(hesitate(x))


def model() -> nn.Module:
    layers = [part for _ in range(4) for part in (nn.Linear(WIDTH, WIDTH), Hesitant())]
    return nn.Sequential(*layers[:-1]).double()


def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    inputs, targets = torch.randn(64, WIDTH, dtype=torch.float64), torch.randint(WIDTH, (64,))
    return (inputs[:48], targets[:48]), (inputs[48:], targets[48:])
