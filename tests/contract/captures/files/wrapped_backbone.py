"""Nearly all of the model in one submodule, of which one part looks at values."""

import torch
from torch import Tensor, nn


class Routed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        chosen = x.mean(1) > 0
        result = x.clone()
        if chosen.any():
            result[chosen] = self.linear(x[chosen])
        return result


class Backbone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.routed = nn.Linear(6, 8), Routed()
        self.stages = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Tensor, scale: float = 1.0) -> list[Tensor]:
        x, found = self.stem(x), []
        for stage in self.stages:
            x = stage(x).relu() * scale
            found.append(x)
        found.append(self.routed(x))
        return found


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.head = Backbone(), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.stack(self.backbone(x)).sum(0))


def model() -> nn.Module:
    return Detector()


def example(n: int):
    return torch.randn(n, 6), torch.randint(3, (n,))
