"""VGG-11 for 32x32 images with wide fully connected layers: 29.7 million parameters."""

import torch
from torch import Tensor, nn

WIDTHS = (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)
HIDDEN = 4272


def model() -> nn.Module:
    layers: list[nn.Module] = []
    channels = 3
    for width in WIDTHS:
        if width:
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        else:
            layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(512, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(HIDDEN, 10))


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.rand(batch, 3, 32, 32), torch.randint(10, (batch,))
