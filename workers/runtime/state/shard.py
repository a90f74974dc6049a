"""A replica's shard of a stage's state: which numbers of the weights it updates for all of them.

Every replica has the sum of the gradients, updates its shard of the weights, and gathers those of
the others (ZeRO-1: Rajbhandari et al., SC 2020, section 5.1). Shards are cut through the gradient
buckets, so that all are equally large and travel in the buckets' own memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.runtime.messages.bucket import Bucket
from workers.runtime.messages.gradient_buckets import Buckets


@dataclass(frozen=True, slots=True)
class Slice:
    """Numbers `first` up to `stop` of the flattened weight `name`, or all of it."""

    name: str
    first: int
    stop: int
    is_whole: bool

    def of(self, tensor: Tensor) -> Tensor:
        """Those of a tensor in the weight's shape: its own memory. All of them keep the shape."""
        return tensor if self.is_whole else tensor.view(-1)[self.first : self.stop]

    def copied(self, tensor: Tensor) -> Tensor:
        """Those alone, so that the others need not be kept; all of them are not copied."""
        return tensor if self.is_whole else self.of(tensor.contiguous()).clone()


def whole(weights: Mapping[str, Tensor]) -> tuple[Slice, ...]:
    """What a rank that shares with nobody updates: every weight."""
    return tuple(Slice(name, 0, weight.numel(), True) for name, weight in weights.items())


class Shard:
    """That of this rank, one of those that reduce `buckets`."""

    def __init__(self, buckets: Buckets) -> None:
        self._group, self._buckets = buckets.group, buckets.buckets
        place = buckets.group.place
        self._slices = [_slices(bucket, place) for bucket in self._buckets]

    @property
    def slices(self) -> tuple[Slice, ...]:
        return tuple(each for slices in self._slices for each in slices)

    def gather(self, own: Sequence[Tensor], into: Mapping[str, Tensor]) -> None:
        """Put what every replica has for its slices into whole tensors; `own` is for `slices`.
        Every replica calls it, and when no gradient waits: it takes their place where the dtype is
        the same."""
        new = iter(own)
        for bucket, slices in zip(self._buckets, self._slices, strict=True):
            if not bucket.parts:
                continue
            flat = _room(bucket, into)
            for each in slices:
                first = bucket.firsts[each.name]
                flat[first + each.first : first + each.stop].copy_(next(new).reshape(-1))
            if bucket.shard:
                self._group.gather(flat)
            for name, part in bucket.parts.items():
                first = bucket.firsts[name]
                into[name].copy_(flat[first : first + part.numel()].view_as(part))


def _slices(bucket: Bucket, place: int) -> tuple[Slice, ...]:
    """Of the weights in a bucket those numbers that the replica at `place` updates."""
    found = []
    for name, part in bucket.parts.items():
        start, size = bucket.firsts[name], part.numel()
        first = max(0, place * bucket.shard - start)
        stop = min(size, (place + 1) * bucket.shard - start)
        if first < stop or place == size == 0:
            found.append(Slice(name, first, stop, stop - first == size))
    return tuple(found)


def _room(bucket: Bucket, into: Mapping[str, Tensor]) -> Tensor:
    """For all that goes into the bucket's weights: the bucket itself, or more where that is
    needed."""
    dtype = into[next(iter(bucket.parts))].dtype
    flat = bucket.flat[:-1]
    return flat if flat.dtype == dtype else torch.empty_like(flat, dtype=dtype)
