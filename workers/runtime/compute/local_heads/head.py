"""What every local head is: scores in the form of the model's output, and a loss of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from workers.definitions.definition import Loss
from workers.definitions.samples import Samples
from workers.runtime.compute.local_heads.features import Features

Bundle = Sequence[Tensor]


@dataclass(frozen=True, slots=True)
class HeadSize:
    """`features` of a row, `scores` as many as the model's output has, numbers of `dtype`; first
    values are drawn from `seed`. `shapes`: of the tensors that the head reads."""

    features: int
    scores: int
    dtype: torch.dtype
    seed: int
    shapes: tuple[tuple[int, ...], ...]

    def drawn(self, *shape: int) -> nn.Parameter:
        """A matrix of normal numbers with variance 1 / columns, alike for equal seeds."""
        generator = torch.Generator().manual_seed(self.seed)
        columns = torch.Size(shape[1:]).numel()
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        return nn.Parameter((drawn * columns**-0.5).to(self.dtype))


class LocalHead(nn.Module):
    """`decoder` makes scores of rows of features; it begins with zeros, so that the first loss is
    that of scores that are all equal."""

    def __init__(self, features: Features, decoder: nn.Module) -> None:
        super().__init__()
        self.features, self.decoder = features, decoder

    def forward(self, bundle: Bundle) -> Tensor:
        """(samples, scores), or (samples, tokens, scores)."""
        scores: Tensor = self.decoder(self.features.rows(bundle))
        return scores

    def loss(self, bundle: Bundle, answers: Samples, of_model: Loss) -> Tensor:
        """A mean over the samples; `of_model` is the loss that the last stage has."""
        return of_model(self(bundle), answers)


def zero_linear(size: HeadSize) -> nn.Linear:
    """A linear layer of zeros."""
    layer = nn.Linear(size.features, size.scores, dtype=size.dtype)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
    return layer
