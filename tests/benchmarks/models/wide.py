"""Two wide fully connected layers and a narrow one behind: 16.8 million weights, and activations
that are small beside them."""

import torch
from torch import Tensor, nn

WIDTH, HIDDEN = 1024, 8192


def model() -> nn.Module:
    return nn.Sequential(
        nn.Linear(WIDTH, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, 10),
    )


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.rand(batch, WIDTH), torch.randint(10, (batch,))


def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    return example(512), example(32)


def loss(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(output, target)
