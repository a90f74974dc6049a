"""The last layer reads the first one's weight, across every cut. In double precision, where it is
`precise`."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.inner = nn.Linear(6, 6), nn.Linear(6, 6)
        self.out = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.first(x))
        x = torch.tanh(self.inner(x))
        x = torch.tanh(functional.linear(x, self.first.weight))
        return self.out(x)


def model(precise: bool = True) -> nn.Module:
    made = Tied()
    return made.double() if precise else made


def data(precise: bool = True) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    inputs = torch.randn(70, 6, dtype=torch.float64 if precise else torch.float32)
    targets = torch.randint(4, (70,))
    return (inputs[:58], targets[:58]), (inputs[58:], targets[58:])
