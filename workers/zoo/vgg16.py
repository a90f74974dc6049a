"""VGG-16 for ImageNet (Simonyan and Zisserman, ICLR 2015), 138 million parameters."""

from collections import OrderedDict

import torch
from torch import Tensor, nn

WIDTHS = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)


def model() -> nn.Module:
    features: list[nn.Module] = []
    channels = 3
    for width in WIDTHS:
        if width:
            features += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        else:
            features.append(nn.MaxPool2d(2))
    classifier = [nn.Flatten(), nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout()]
    classifier += [nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 1000)]
    parts = {"features": nn.Sequential(*features), "classifier": nn.Sequential(*classifier)}
    return nn.Sequential(OrderedDict(parts))


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, 3, 224, 224), torch.randint(1000, (batch,))
