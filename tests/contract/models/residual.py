"""A skip over both cuts: two tensors are alive across them. In double precision, where it is
`precise`."""

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 5), nn.Linear(5, 5)
        self.c, self.d = nn.Linear(5, 5), nn.Linear(5, 4)
        self.scale = nn.Parameter(torch.full((5,), 0.7))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.a(x))
        y = torch.tanh(self.b(x))
        y = self.c(y) * self.scale
        return self.d(torch.tanh(x + y))


def model(precise: bool = True) -> nn.Module:
    made = Residual()
    return made.double() if precise else made


def data(precise: bool = True) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    inputs = torch.randn(70, 6, dtype=torch.float64 if precise else torch.float32)
    targets = torch.randint(4, (70,))
    return (inputs[:58], targets[:58]), (inputs[58:], targets[58:])
