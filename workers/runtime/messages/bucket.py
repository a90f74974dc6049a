"""Gradients of some weights side by side in one long tensor, which sharded state cuts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from workers.runtime.messages.world import Pending

ALIGNED = 128
"""Bytes at whose multiples weights begin and are cut where there are several replicas: two vectors
of the widest kind, which torch's kernels take at a time. So every number is updated by the
instructions that would update it without sharing, and comes out the same to the last bit."""

_LEAST = torch.float32.itemsize
"""Bytes of a number that a loss is told in: in fewer it would lose its digits."""


@dataclass(slots=True)
class Bucket:
    """`flat` ends with a number for the loss, which the last bucket of a stage carries.

    parts   each weight's numbers in `flat`, in its shape
    firsts  where in `flat` they begin
    shard   numbers of each replica, side by side from the start of `flat`
    """

    flat: Tensor
    parts: dict[str, Tensor]
    firsts: dict[str, int]
    shard: int
    missing: set[str] = field(default_factory=set)
    pending: Pending | None = None


def bucket_of(weights: Mapping[str, Tensor], device: torch.device, replicas: int = 1) -> Bucket:
    """An empty one for these weights, which are of one dtype, cut for so many replicas."""
    dtype = _dtype(weights)
    unit = ALIGNED // dtype.itemsize if replicas > 1 else 1
    firsts, stop = {}, 0
    for name, weight in weights.items():
        firsts[name] = stop
        stop += _whole(weight.numel(), unit)
    shard = _whole(stop, unit * replicas) // replicas
    flat = torch.zeros(shard * replicas + 1, dtype=dtype, device=device)
    parts = {
        name: flat[firsts[name] : firsts[name] + weight.numel()].view_as(weight)
        for name, weight in weights.items()
    }
    return Bucket(flat, parts, firsts, shard)


def portions(weights: Mapping[str, Tensor], size: int) -> list[dict[str, Tensor]]:
    """The weights from last to first, in portions of one dtype and about `size` bytes, in the order
    in which they fill. The last has the bits for a loss."""
    full: list[dict[str, Tensor]] = []
    begun: dict[torch.dtype, dict[str, Tensor]] = {}
    for name, weight in reversed(list(weights.items())):
        portion = begun.setdefault(weight.dtype, {})
        portion[name] = weight
        if sum(each.nbytes for each in portion.values()) >= size:
            full.append(begun.pop(weight.dtype))
    full += [begun[dtype] for dtype in sorted(begun, key=lambda dtype: dtype.itemsize)]
    return full if full and _dtype(full[-1]).itemsize >= _LEAST else [*full, {}]


def _dtype(weights: Mapping[str, Tensor]) -> torch.dtype:
    return next((weight.dtype for weight in weights.values()), torch.float32)


def _whole(numbers: int, unit: int) -> int:
    return -(-numbers // unit) * unit
