"""A head of two factors: a large vocabulary costs rank times as much as it has words, not as many
layers as the stage."""

from torch import Tensor, nn

from workers.runtime.compute.local_heads.features import Features
from workers.runtime.compute.local_heads.head import HeadSize, LocalHead, zero_linear

RANK = 64
"""Numbers between the factors (ours)."""


class LowRank(nn.Module):
    """scores = B A x: A (`RANK` x features) is drawn, B begins with zeros."""

    def __init__(self, size: HeadSize) -> None:
        super().__init__()
        self.down = size.drawn(RANK, size.features)
        between = HeadSize(RANK, size.scores, size.dtype, size.seed, size.shapes)
        self.up = zero_linear(between)

    def forward(self, rows: Tensor) -> Tensor:
        scores: Tensor = self.up(nn.functional.linear(rows, self.down))
        return scores


def low_rank(features: Features, size: HeadSize) -> LocalHead:
    """Works for classes too."""
    return LocalHead(features, LowRank(size))
