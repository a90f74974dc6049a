"""Two branches whose layers take turns, so that a stage of one branch is no run of layers.
In double precision, where it is `precise`."""

import torch
from torch import Tensor, nn


class Branched(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(6, 8)
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)
        self.left_more, self.right_more = nn.Linear(8, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.stem(x))
        left = torch.tanh(self.left(x))
        right = torch.tanh(self.right(x))
        left = self.left_more(left)
        right = self.right_more(right)
        return self.head(left * right + x)


def model(precise: bool = True) -> nn.Module:
    made = Branched()
    return made.double() if precise else made


def data(precise: bool = True) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    inputs = torch.randn(70, 6, dtype=torch.float64 if precise else torch.float32)
    targets = torch.randint(4, (70,))
    return (inputs[:58], targets[:58]), (inputs[58:], targets[58:])
