"""The gradients of a replicated stage in a few long tensors, reduced while the backward
still goes on.

The last backward before a reduction meets the weights from the output back to the input, so
the buckets are filled in that order and each is sent as soon as it is full. Replicas must
send them in the same order, whether they had a backward or not.
"""

from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from backend.planning.thresholds import Thresholds
from backend.prediction.gradient_sums import BUCKET_BYTES
from workers.runtime.messages.bucket import bucket_of, portions
from workers.runtime.messages.thresholds import ThresholdSums
from workers.runtime.messages.world import Group


class Buckets:
    """The gradient sums of a stage, by the names of its weights. Each bucket is laid out for a
    shard per replica, also where they share no state: in which order a collective adds depends on
    the place, and so the sums are the same to the last bit with and without. With a `codec` they
    are summed once all are there. Those of the weights `apart` are not
    summed."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        group: Group,
        codec: Thresholds | None = None,
        apart: Collection[str] = (),
    ) -> None:
        self.group = group
        self.coded = ThresholdSums(codec, weights) if codec else None
        size = BUCKET_BYTES if group.timing is None else group.timing.bucket_bytes
        device = next((weight.device for weight in weights.values()), torch.device("cpu"))
        replicas = len(group.ranks)
        summed = {name: weight for name, weight in weights.items() if name not in apart}
        own = {name: weight for name, weight in weights.items() if name in apart}
        self.buckets = [bucket_of(each, device, replicas) for each in portions(summed, size)]
        self._all = [*self.buckets, *(bucket_of(each, device) for each in portions(own, size))]
        self._home = {name: bucket for bucket in self._all for name in bucket.parts}
        self._names = tuple(weights)
        self._is_empty = True
        self._next = len(self.buckets)
        self._counted: set[str] = set()

    @property
    def gradients(self) -> list[Tensor]:
        """In the order of the weights."""
        return [self._home[name].parts[name] for name in self._names]

    def add(self, gradients: Mapping[str, Tensor]) -> None:
        """Add those of one backward, less what was sent during it already."""
        for name, gradient in gradients.items():
            if name not in self._counted:
                self._put(name, gradient)
        self._is_empty, self._counted = False, set()

    def overlap(self, weights: Mapping[str, Tensor]) -> Callable[[], None]:
        """Send each bucket as soon as the backward that follows has filled it. `weights` are
        the tensors that it differentiates. Call the result when it is over."""
        if self.coded is not None:
            return _nothing
        self._next = 0
        for bucket in self.buckets:
            bucket.missing = set(bucket.parts)
        hooks = [_hook(weight, self._arrival(name)) for name, weight in weights.items()]

        def end() -> None:
            for hook in hooks:
                hook.remove()

        return end

    def reduce(self, loss: float) -> float:
        """Sum over the replicas; returns the sum of their losses."""
        if self._next == len(self.buckets):
            self._next = 0
        if self._is_empty:
            for bucket in self._all:
                bucket.flat.zero_()
        if self.coded is not None:
            self.coded.sum([bucket.parts for bucket in self.buckets], self.group)
            total = torch.tensor([loss], device=self.buckets[0].flat.device)
            self.group.sum(total)
            self._is_empty = True
            return float(total.item())
        self.buckets[-1].flat[-1] = loss
        while self._next < len(self.buckets):
            self._send()
        for bucket in self.buckets:
            assert bucket.pending is not None
            bucket.pending.wait()
            bucket.pending = None
        self._is_empty = True
        return float(self.buckets[-1].flat[-1].item())

    def _arrival(self, name: str) -> Callable[[Tensor], None]:
        def arrived(gradient: Tensor) -> None:
            self._put(name, gradient)
            self._counted.add(name)
            self._home[name].missing.discard(name)
            last = len(self.buckets) - 1  # it carries the loss and is sent by `reduce`
            while self._next < last and not self.buckets[self._next].missing:
                self._send()

        return arrived

    def _put(self, name: str, gradient: Tensor) -> None:
        part = self._home[name].parts[name]
        with torch.no_grad():
            if self._is_empty:
                part.copy_(gradient)
            else:
                part.add_(gradient)

    def _send(self) -> None:
        bucket = self.buckets[self._next]
        bucket.pending = self.group.sum_later(bucket.flat)
        self._next += 1


def _hook(weight: Tensor, arrived: Callable[[Tensor], None]) -> RemovableHandle:
    handle: RemovableHandle = weight.register_hook(arrived)  # type: ignore[no-untyped-call]
    return handle


def _nothing() -> None:
    """Where gradients wait for all of them, no hooks are to be removed."""
