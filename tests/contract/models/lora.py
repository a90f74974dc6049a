"""Low-rank adapters (Hu et al., ICLR 2022) on a small transformer whose base is frozen: the first
block has none, so nothing is trained up to its end. In double precision, where it is `precise`."""

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, TOKENS, LENGTH, RANK = 8, 12, 6, 2


class Adapted(nn.Module):
    """y = base(x) + scale up(down(x)); only `up` and `down` learn."""

    def __init__(self, base: nn.Linear, rank: int, scale: float = 2.0) -> None:
        super().__init__()
        self.base, self.scale = base, scale
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.scale * self.up(self.down(x))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.before(x)
        scores = self.query(y) @ self.key(y).transpose(1, 2) / WIDTH**0.5
        x = x + self.out(torch.softmax(scores, -1) @ self.value(y))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(TOKENS, WIDTH)
        self.first, self.second, self.third = Block(WIDTH), Block(WIDTH), Block(WIDTH)
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.third(self.second(self.first(self.words(tokens))))
        return self.head(x.mean(1))


def adapted(base: Base) -> Base:
    """`base` with every weight frozen, and adapters in its last two blocks."""
    base.requires_grad_(False)
    for block in (base.second, base.third):
        for name in ("query", "value", "wide"):
            setattr(block, name, Adapted(getattr(block, name), RANK))
    return base


def model(precise: bool = True) -> nn.Module:
    made = adapted(Base())
    return made.double() if precise else made


def data(_precise: bool = True) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    inputs, targets = torch.randint(TOKENS, (70, LENGTH)), torch.randint(4, (70,))
    return (inputs[:58], targets[:58]), (inputs[58:], targets[58:])
