"""A U-net: what is made first is read last."""

import torch
from torch import Tensor, nn
from torch.nn import functional


def pair(i: int, o: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = pair(1, 4), pair(4, 8), pair(8, 8)
        self.up2, self.up1, self.out = pair(16, 4), pair(8, 4), nn.Conv2d(4, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        one = self.down1(x)
        two = self.down2(functional.max_pool2d(one, 2))
        x = self.bottom(functional.max_pool2d(two, 2))
        x = self.up2(torch.cat([functional.interpolate(x, scale_factor=2), two], 1))
        return self.out(
            self.up1(torch.cat([functional.interpolate(x, size=one.shape[-2:]), one], 1))
        )


def model() -> nn.Module:
    return UNet()


def example(n: int):
    return torch.randn(n, 1, 8, 8), torch.randint(2, (n, 8, 8))


def loss(output, target):
    return functional.cross_entropy(output, target)
