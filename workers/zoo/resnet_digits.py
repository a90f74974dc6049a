"""Residual network for 8x8 handwritten digits (He et al., CVPR 2016): a graph with skips."""

import torch
from torch import Tensor, nn

DATA = "digits"


class Block(nn.Module):
    """x + f(x), where f halves the picture and the skip is projected if `stride` is 2."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        same = stride == 1 and inputs == outputs
        self.skip = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        total: Tensor = self.relu(y + self.skip(x))
        return total


class ResNet(nn.Module):
    """A stem, three stages of two blocks, and a linear classifier."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        blocks: list[nn.Module] = []
        inputs = width
        for outputs, stride in ((width, 1), (2 * width, 2), (4 * width, 2)):
            blocks += [Block(inputs, outputs, stride), Block(outputs, outputs)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(inputs, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.relu(self.norm(self.stem(x))))
        logits: Tensor = self.head(self.pool(x).flatten(1))
        return logits


def model() -> nn.Module:
    return ResNet()


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.rand(batch, 1, 8, 8), torch.randint(10, (batch,))
