"""Inception-v3 for ImageNet (Szegedy et al., CVPR 2016), 27.2 million parameters."""

import torch
from torch import Tensor, nn
from torch.nn import functional

AUXILIARY_SHARE = 0.4
"""Weight of the auxiliary classifier's loss, as in the reference implementations."""


def conv(
    inputs: int,
    outputs: int,
    kernel: int | tuple[int, int],
    stride: int = 1,
    padding: int | tuple[int, int] = 0,
) -> nn.Sequential:
    """A convolution without bias, batch normalisation and a rectifier."""
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU())


class Branches(nn.Module):
    """Branches beside each other, their channels joined."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def pool_branch(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.AvgPool2d(3, 1, padding=1), conv(inputs, outputs, 1))


def block_a(inputs: int, pool: int, w: int) -> nn.Module:
    """Figure 5: factorised 5x5."""
    return Branches(
        conv(inputs, 8 * w, 1),
        nn.Sequential(conv(inputs, 6 * w, 1), conv(6 * w, 8 * w, 5, padding=2)),
        nn.Sequential(
            conv(inputs, 8 * w, 1),
            conv(8 * w, 12 * w, 3, padding=1),
            conv(12 * w, 12 * w, 3, padding=1),
        ),
        pool_branch(inputs, pool * w),
    )


def grid_a(inputs: int, w: int) -> nn.Module:
    return Branches(
        conv(inputs, 48 * w, 3, stride=2),
        nn.Sequential(
            conv(inputs, 8 * w, 1), conv(8 * w, 12 * w, 3, padding=1), conv(12 * w, 12 * w, 3, 2)
        ),
        nn.MaxPool2d(3, 2),
    )


def block_b(inputs: int, middle: int, w: int) -> nn.Module:
    """Figure 6: 7x7 as 1x7 and 7x1."""
    m, out = middle * w, 24 * w

    def wide(inputs: int, outputs: int) -> nn.Module:
        return conv(inputs, outputs, (1, 7), padding=(0, 3))

    def tall(inputs: int, outputs: int) -> nn.Module:
        return conv(inputs, outputs, (7, 1), padding=(3, 0))

    return Branches(
        conv(inputs, out, 1),
        nn.Sequential(conv(inputs, m, 1), wide(m, m), tall(m, out)),
        nn.Sequential(
            conv(inputs, m, 1),
            tall(m, m),
            wide(m, m),
            tall(m, m),
            wide(m, out),
        ),
        pool_branch(inputs, out),
    )


def grid_b(inputs: int, w: int) -> nn.Module:
    out = 24 * w
    return Branches(
        nn.Sequential(conv(inputs, out, 1), conv(out, 40 * w, 3, stride=2)),
        nn.Sequential(
            conv(inputs, out, 1),
            conv(out, out, (1, 7), padding=(0, 3)),
            conv(out, out, (7, 1), padding=(3, 0)),
            conv(out, out, 3, stride=2),
        ),
        nn.MaxPool2d(3, 2),
    )


def block_c(inputs: int, w: int) -> nn.Module:
    """Figure 7: the last branches spread into 1x3 and 3x1."""

    def spread() -> nn.Module:
        return Branches(
            conv(48 * w, 48 * w, (1, 3), padding=(0, 1)),
            conv(48 * w, 48 * w, (3, 1), padding=(1, 0)),
        )

    return Branches(
        conv(inputs, 40 * w, 1),
        nn.Sequential(conv(inputs, 48 * w, 1), spread()),
        nn.Sequential(conv(inputs, 56 * w, 1), conv(56 * w, 48 * w, 3, padding=1), spread()),
        pool_branch(inputs, 24 * w),
    )


class Auxiliary(nn.Module):
    """The side classifier on the 17x17 grid."""

    def __init__(self, inputs: int, classes: int, w: int) -> None:
        super().__init__()
        self.pool = nn.AvgPool2d(5, 3)
        self.conv0, self.conv1 = conv(inputs, 16 * w, 1), conv(16 * w, 96 * w, 5)
        self.spread = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(96 * w, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv1(self.conv0(self.pool(x)))
        logits: Tensor = self.fc(self.spread(x).flatten(1))
        return logits


class Inception(nn.Module):
    """Logits, and those of the side classifier where there is one."""

    def __init__(self, w: int, classes: int, auxiliary: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            conv(3, 4 * w, 3, stride=2),
            conv(4 * w, 4 * w, 3),
            conv(4 * w, 8 * w, 3, padding=1),
            nn.MaxPool2d(3, 2),
            conv(8 * w, 10 * w, 1),
            conv(10 * w, 24 * w, 3),
            nn.MaxPool2d(3, 2),
        )
        self.mixed5 = nn.Sequential(
            block_a(24 * w, 4, w), block_a(32 * w, 8, w), block_a(36 * w, 8, w)
        )
        self.grid6 = grid_a(36 * w, w)
        self.mixed6 = nn.Sequential(*(block_b(96 * w, m, w) for m in (16, 20, 20, 24)))
        self.auxiliary = Auxiliary(96 * w, classes, w) if auxiliary else None
        self.grid7 = grid_b(96 * w, w)
        self.mixed7 = nn.Sequential(block_c(160 * w, w), block_c(256 * w, w))
        self.pool, self.dropout = nn.AdaptiveAvgPool2d(1), nn.Dropout()
        self.fc = nn.Linear(256 * w, classes)

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        x = self.mixed6(self.grid6(self.mixed5(self.stem(x))))
        side = None if self.auxiliary is None else self.auxiliary(x)
        x = self.mixed7(self.grid7(x))
        logits: Tensor = self.fc(self.dropout(self.pool(x)).flatten(1))
        return logits if side is None else (logits, side)


def model(width: int = 8, classes: int = 1000, auxiliary: bool = True) -> nn.Module:
    return Inception(width, classes, auxiliary)


def example(batch: int, image: int = 299, classes: int = 1000) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, 3, image, image), torch.randint(classes, (batch,))


def loss(output: Tensor | tuple[Tensor, Tensor], target: Tensor) -> Tensor:
    if isinstance(output, Tensor):
        return functional.cross_entropy(output, target)
    logits, side = output
    side_loss = functional.cross_entropy(side, target)
    return functional.cross_entropy(logits, target) + AUXILIARY_SHARE * side_loss
