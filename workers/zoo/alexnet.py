"""AlexNet for ImageNet (Krizhevsky et al., NeurIPS 2012), 61 million parameters."""

from collections import OrderedDict

import torch
from torch import Tensor, nn


def model(width: int = 96, hidden: int = 4096, classes: int = 1000, towers: int = 2) -> nn.Module:
    """The paper's two towers; towers=1, width=64 is the later one (Krizhevsky, 2014)."""
    if towers == 1:
        widths = (width, 3 * width, 6 * width, 4 * width, 4 * width)
    else:
        widths = (width, width * 8 // 3, 4 * width, 4 * width, width * 8 // 3)
    first, second, third, fourth, fifth = widths
    features = [
        nn.Conv2d(3, first, 11, stride=4, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(first, second, 5, padding=2, groups=towers),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(second, third, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(third, fourth, 3, padding=1, groups=towers),
        nn.ReLU(),
        nn.Conv2d(fourth, fifth, 3, padding=1, groups=towers),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
    ]
    classifier = [nn.AdaptiveAvgPool2d(6), nn.Flatten(), nn.Dropout()]
    classifier += [nn.Linear(fifth * 36, hidden), nn.ReLU(), nn.Dropout()]
    classifier += [nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, classes)]
    parts = {"features": nn.Sequential(*features), "classifier": nn.Sequential(*classifier)}
    return nn.Sequential(OrderedDict(parts))


def example(batch: int, image: int = 224, classes: int = 1000) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, 3, image, image), torch.randint(classes, (batch,))
