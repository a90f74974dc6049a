"""VGG-style network for 8x8 handwritten digits: convolutions compute, full layers hold weights."""

from collections import OrderedDict

import torch
from torch import Tensor, nn

DATA = "digits"
WIDTHS = (64, 64, "pool", 128, 128, "pool", 256, 256)


def model() -> nn.Module:
    features: list[nn.Module] = []
    channels = 1
    for width in WIDTHS:
        if isinstance(width, int):
            features += [nn.Conv2d(channels, width, kernel_size=3, padding=1), nn.ReLU()]
            channels = width
        else:
            features.append(nn.MaxPool2d(2))
    classifier = [nn.Flatten(), nn.Linear(channels * 2 * 2, 2048), nn.ReLU()]
    classifier += [nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 10)]
    parts = {"features": nn.Sequential(*features), "classifier": nn.Sequential(*classifier)}
    network = nn.Sequential(OrderedDict(parts))
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.kaiming_normal_(parameter, nonlinearity="relu")
    return network


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.rand(batch, 1, 8, 8), torch.randint(10, (batch,))
