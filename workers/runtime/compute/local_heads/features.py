"""What a local head reads: the tensors of a stage's bundle, as one row of features per answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from backend.errors import InvalidInput
from workers.definitions.tracing.record import TensorSpec

MOST_POOLED = 2048
"""Features of a picture after pooling, at most, where its channels allow it (Nøkland and Eidnes,
ICML 2019: the width that they use on CIFAR-10)."""


@dataclass(frozen=True, slots=True)
class Features:
    """Of a bundle, the tensors in `places`. With `of_tokens` an answer belongs to each token, else
    to each sample."""

    places: tuple[int, ...]
    of_tokens: bool

    @staticmethod
    def of(specs: Sequence[TensorSpec], rows: tuple[int, ...]) -> "Features":
        """Those of a bundle of these specs: every tensor with features for each of the answers,
        whose shape is `rows` = (samples,) or (samples, tokens), through which a gradient would go
        back. Raises `InvalidInput` where there is none."""
        of_tokens, ahead = len(rows) == 2, len(rows)
        places = tuple(
            place
            for place, spec in enumerate(specs)
            if spec.requires_grad
            and not spec.is_weight
            and len(spec.shape) > ahead
            and spec.shape[:ahead] == rows
        )
        if not places:
            shapes = ", ".join(str(spec.shape) for spec in specs)
            what = "samples x tokens x features" if of_tokens else "samples x features"
            raise InvalidInput(
                f"a local head reads {what}, and the stage hands on tensors of {shapes}",
                "Cut the model elsewhere, or use a schedule without local losses.",
            )
        return Features(places, of_tokens)

    def width(self, specs: Sequence[TensorSpec]) -> int:
        """Features of a row."""
        return self.rows([torch.empty(spec.shape, device="meta") for spec in specs]).shape[-1]

    def rows(self, bundle: Sequence[Tensor]) -> Tensor:
        """(samples, features), or (samples, tokens, features)."""
        chosen = [bundle[place] for place in self.places]
        if self.of_tokens:
            return torch.cat([tensor.flatten(2) for tensor in chosen], dim=-1)
        return torch.cat([pooled(tensor) for tensor in chosen], dim=-1)


def pooled(tensor: Tensor) -> Tensor:
    """(samples, features): the mean over tokens of (N, T, D); of (N, C, H, W) the means of k x k
    fields, the largest k with C k^2 <= `MOST_POOLED`; others as they are."""
    if tensor.dim() == 3:
        return tensor.mean(1)
    if tensor.dim() == 4:
        channels, height, width = tensor.shape[1:]
        size = max(1, int((MOST_POOLED / channels) ** 0.5))
        fields = min(size, height), min(size, width)
        return nn.functional.adaptive_avg_pool2d(tensor, fields).flatten(1)
    return tensor.flatten(1)
