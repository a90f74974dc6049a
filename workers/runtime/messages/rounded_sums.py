"""Sums of the replicas' gradients in numbers of two bytes, while the backward still goes on.

    of each bucket, on each replica:
        c = its gradients, rounded; given to each other replica, and theirs taken
        g = c of the first replica + c of the second + ...    in the gradients' own precision

Rounded once, before the sum: a ring would round at every step. All replicas add in one order, so
that they stay equal to the last bit.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from backend.planning.rounded_sums import RoundedSums
from workers.runtime.messages.bucket import Bucket
from workers.runtime.messages.coding import SentBytes
from workers.runtime.messages.peers import flat, put, summed_bytes
from workers.runtime.messages.world import Pending

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Gatherers(Protocol):
    """Those of a stage; all call the same in the same order."""

    @property
    def ranks(self) -> tuple[int, ...]: ...

    @property
    def place(self) -> int:
        """Of this rank in `ranks`."""

    def gather_later(self, flat: Tensor) -> Pending:
        """Put every rank's part in its place; begun."""


@dataclass(frozen=True, slots=True)
class RoundedSum:
    """Of a bucket, under way: `given` has the part of each replica, side by side."""

    gathering: Pending
    given: Tensor
    gradients: list[Tensor]

    def wait(self) -> None:
        """Put the sums in the gradients' place."""
        self.gathering.wait()
        first, *others = self.given
        total = first.to(self.gradients[0].dtype)
        for each in others:
            total += each
        put(total, self.gradients)


class RoundedBuckets:
    """The sums of one replica of a stage; `sent` counts what it gave to others."""

    def __init__(self, codec: RoundedSums, replicas: Gatherers) -> None:
        self._dtype, self._replicas = DTYPES[codec.numbers], replicas
        self.sent = SentBytes()

    def begin(self, bucket: Bucket) -> Pending | None:
        """The sum of a bucket, begun; None of one without gradients."""
        gradients = list(bucket.parts.values())
        if not gradients:
            return None
        own, members = flat(gradients), len(self._replicas.ranks)
        given = own.new_empty((members, own.numel()), dtype=self._dtype)
        given[self._replicas.place] = own
        num_bytes = (members - 1) * given[0].nbytes
        self.sent += SentBytes(num_bytes, summed_bytes([own], members))
        return RoundedSum(self._replicas.gather_later(given.view(-1)), given, gradients)
