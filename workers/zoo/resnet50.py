"""ResNet-50 for ImageNet (He et al., CVPR 2016), 25.6 million parameters."""

import torch
from torch import Tensor, nn

BLOCKS = (3, 4, 6, 3)
"""Bottlenecks per stage of halved pictures (table 1, 50 layers)."""
EXPANSION = 4


class Bottleneck(nn.Module):
    """x + f(x), f = 1x1, 3x3, 1x1 convolutions; the skip is projected where shapes differ."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        total: Tensor = self.relu(y + self.downsample(x))
        return total


class ResNet(nn.Module):
    """Stem, four stages of bottlenecks, average pooling, classifier."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        inputs, stages = width, []
        for index, count in enumerate(BLOCKS):
            inner = width * 2**index
            blocks = []
            for number in range(count):
                blocks.append(Bottleneck(inputs, inner, 2 if index and not number else 1))
                inputs = inner * EXPANSION
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        logits: Tensor = self.fc(self.avgpool(self.stages(x)).flatten(1))
        return logits


def model(width: int = 64, classes: int = 1000) -> nn.Module:
    return ResNet(width, classes)


def example(batch: int, image: int = 224, classes: int = 1000) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, 3, image, image), torch.randint(classes, (batch,))
