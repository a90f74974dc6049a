"""Features of several sizes as a list, boxes and classes as a dict of lists."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList([nn.Conv2d(1, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1)])
        self.norm = nn.GroupNorm(2, 4)
        self.boxes, self.classes = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 3, 1)

    def forward(self, picture: Tensor) -> dict[str, list[Tensor]]:
        features = []
        for stage in self.stages:
            picture = self.norm(stage(picture)).relu()
            features.append(picture)
        return {
            "boxes": [self.boxes(each).sigmoid() for each in features],
            "classes": [self.classes(each) for each in features],
        }


def model() -> nn.Module:
    return Detector()


def example(n: int):
    return torch.randn(n, 1, 8, 8), {"box": torch.rand(n, 4), "kind": torch.randint(3, (n,))}


def loss(output, target):
    boxes = sum(functional.l1_loss(each.mean((2, 3)), target["box"]) for each in output["boxes"])
    return boxes + sum(
        functional.cross_entropy(each.mean((2, 3)), target["kind"]) for each in output["classes"]
    )
