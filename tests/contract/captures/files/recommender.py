"""Numbers and categories by name, and their products by pairs."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleDict(
            {name: nn.Embedding(12, 8) for name in ("user", "item", "shop")}
        )
        self.bottom = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, numbers: Tensor, **categories: Tensor) -> Tensor:
        x = self.bottom(numbers)
        found = [self.tables[name](value) for name, value in categories.items()]
        features = torch.stack([x, *found], 1)
        products = features @ features.transpose(1, 2)
        rows, columns = torch.triu_indices(4, 4, 1)
        return self.top(torch.cat([x, products[:, rows, columns]], 1)).squeeze(1)


def model() -> nn.Module:
    return Recommender()


def example(n: int):
    names = {name: torch.randint(12, (n,)) for name in ("user", "item", "shop")}
    return {"numbers": torch.rand(n, 5), **names}, torch.rand(n).round()


def loss(output, target):
    return functional.binary_cross_entropy_with_logits(output, target)
