"""Gradients that come from no backward."""

from collections.abc import Mapping

from torch import Tensor

from workers.runtime.state.weights import Weights


def add(weights: Weights, gradients: Mapping[str, Tensor]) -> None:
    """Add those of all weights to the sums, as a backward does."""
    sums, found = weights.sums, list(gradients.values())
    if not sums:
        weights.sums = [gradient.clone() for gradient in found]
        return
    for so_far, gradient in zip(sums, found, strict=True):
        so_far.add_(gradient)
    weights.sums = sums
