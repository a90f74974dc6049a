"""A loss that reads a mask among the inputs."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.inner, self.tags = nn.Embedding(20, 8), nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, text: Tensor, mask: Tensor) -> Tensor:
        x = self.inner(self.words(text)) * mask.unsqueeze(-1)
        return self.tags(x.relu() + x.sum(1, keepdim=True))


def model() -> nn.Module:
    return Tagger()


def example(n: int):
    mask = (torch.rand(n, 6) < 0.8).float()
    mask[:, 0] = 1
    return {"text": torch.randint(20, (n, 6)), "mask": mask}, torch.randint(4, (n, 6))


def loss(output, target, inputs):
    found = functional.cross_entropy(output.transpose(1, 2), target, reduction="none")
    return (found * inputs["mask"]).sum() / inputs["mask"].sum()
