"""What is drawn anew in every epoch, by (seed, epoch, number of the sample): the same on every
rank, for every replica, and after a training goes on from a checkpoint."""

from dataclasses import replace
from hashlib import blake2b
from typing import Protocol, runtime_checkable

import torch

from workers.data.split import Answered, Split, Subset


@runtime_checkable
class DrawnSplit(Protocol):
    """A split whose samples are others in every epoch."""

    def of_epoch(self, seed: int, epoch: int) -> Split: ...


def generator_of(seed: int, epoch: int, number: int) -> torch.Generator:
    """That of one sample in one epoch; -1 is no epoch, but an evaluation."""
    drawn = blake2b(f"{seed},{epoch},{number}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(drawn, "big", signed=True))


def of_epoch(part: Split, seed: int, epoch: int) -> Split:
    """The samples of `part` as this epoch of a run of `seed` has them."""
    if isinstance(part, DrawnSplit):
        return part.of_epoch(seed, epoch)
    if isinstance(part, Answered | Subset):
        return replace(part, whole=of_epoch(part.whole, seed, epoch))
    return part
