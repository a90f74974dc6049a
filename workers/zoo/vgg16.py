"""VGG-16 for ImageNet (Simonyan and Zisserman, ICLR 2015), 138 million parameters."""

from collections import OrderedDict

import torch
from torch import Tensor, nn

WIDTHS = (1, 1, 0, 2, 2, 0, 4, 4, 4, 0, 8, 8, 8, 0, 8, 8, 8, 0)
"""Multiples of the first width; 0 is a pooling."""


def model(width: int = 64, hidden: int = 4096, classes: int = 1000, image: int = 224) -> nn.Module:
    features: list[nn.Module] = []
    channels = 3
    for multiple in WIDTHS:
        if multiple:
            features += [nn.Conv2d(channels, multiple * width, 3, padding=1), nn.ReLU()]
            channels = multiple * width
        else:
            features.append(nn.MaxPool2d(2))
    pixels = (image // 32) ** 2
    classifier = [nn.Flatten(), nn.Linear(channels * pixels, hidden), nn.ReLU(), nn.Dropout()]
    classifier += [nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(), nn.Linear(hidden, classes)]
    parts = {"features": nn.Sequential(*features), "classifier": nn.Sequential(*classifier)}
    return nn.Sequential(OrderedDict(parts))


def example(batch: int, image: int = 224, classes: int = 1000) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, 3, image, image), torch.randint(classes, (batch,))
