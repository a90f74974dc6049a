"""The gradients of a replicated stage in a few long tensors, reduced while the backward
still goes on.

The last backward before a reduction meets the weights from the output back to the input, so
the buckets are filled in that order and each is sent as soon as it is full. Replicas must
send them in the same order, whether they had a backward or not.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from backend.planning.codec_of_sums import CodecOfSums
from backend.planning.rounded_sums import RoundedSums
from backend.planning.thresholds import Thresholds
from backend.prediction.gradient_sums import BUCKET_BYTES
from workers.definitions.samples import dense
from workers.runtime.messages.bucket import bucket_of, portions
from workers.runtime.messages.coding import SentBytes
from workers.runtime.messages.rounded_sums import RoundedBuckets
from workers.runtime.messages.thresholds import ThresholdSums
from workers.runtime.messages.world import Group


class Buckets:
    """The gradient sums of a stage, by the names of its weights. Each bucket is laid out for a
    shard per replica, also where they share no state: in which order a collective adds depends on
    the place, and so the sums are the same to the last bit with and without. By thresholds they
    are summed once all are there, rounded ones bucket by bucket. Those of the weights `apart` are
    not summed: each replica has weights of its own under their names."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        group: Group,
        codec: CodecOfSums | None = None,
        apart: Collection[str] = (),
    ) -> None:
        self.group, self.apart = group, frozenset(apart)
        self.coded = ThresholdSums(codec, weights) if isinstance(codec, Thresholds) else None
        self._rounded = RoundedBuckets(codec, group) if isinstance(codec, RoundedSums) else None
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

    @property
    def gradients(self) -> list[Tensor]:
        """In the order of the weights."""
        return [self._home[name].parts[name] for name in self._names]

    @property
    def sent(self) -> SentBytes:
        """What coded sums sent so far."""
        counted = self.coded or self._rounded
        return counted.sent if counted else SentBytes()

    @property
    def sums(self) -> list[Tensor]:
        """The sums so far, which a backward may add to in place; [] before the first gradient of
        an update. What it made of them is set in their place."""
        return [] if self._is_empty else self.gradients

    @sums.setter
    def sums(self, found: Sequence[Tensor]) -> None:
        for part, gradient in zip(self.gradients, found, strict=True):
            if gradient is not part:
                part.copy_(gradient)
        self._is_empty = False

    @contextmanager
    def filling(self, weights: Mapping[str, Tensor], is_last: bool) -> Iterator[None]:
        """Inside, a backward may be made that adds the gradients of the tensors `weights` to
        `sums`. The first one of an update makes new tensors: each goes into its bucket as soon as
        it is made, so that they are never there all at once. Within the last one before a reduction
        each bucket is sent as soon as it is full."""
        sends = is_last and self.coded is None
        if sends:
            self._next = 0
            for bucket in self.buckets:
                bucket.missing = set(bucket.parts)
        watched = weights.items() if sends or self._is_empty else ()
        hooks = [_hook(weight, self._arrival(name, sends)) for name, weight in watched]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def reduce(self, loss: float) -> float:
        """Sum over the replicas; returns the sum of their losses."""
        if self._next == len(self.buckets):
            self._next = 0
        if self._is_empty:
            for bucket in self._all:
                bucket.flat.zero_()
        if self.coded is not None:
            self.coded.sum([bucket.parts for bucket in self.buckets], self.group)
            self._is_empty = True
            return self._summed(loss)
        self.buckets[-1].flat[-1] = loss
        while self._next < len(self.buckets):
            self._send()
        for bucket in self.buckets:
            if bucket.pending is not None:
                bucket.pending.wait()
            bucket.pending = None
        self._is_empty = True
        return self._summed(loss) if self._rounded else float(self.buckets[-1].flat[-1].item())

    def _summed(self, loss: float) -> float:
        """The sum of all replicas' losses, where it travels in no bucket."""
        total = torch.tensor([loss], device=self.buckets[0].flat.device)
        self.group.sum(total)
        return float(total.item())

    def _arrival(self, name: str, sends: bool) -> Callable[[Tensor], None]:
        """What happens once the gradient of a weight is whole."""
        bucket = self._home[name]

        def arrived(weight: Tensor) -> None:
            part = bucket.parts[name]
            if weight.grad is not None and weight.grad is not part:
                part.copy_(dense(weight.grad))
                weight.grad = part
            bucket.missing.discard(name)
            last = len(self.buckets) - 1  # it carries the loss and is sent by `reduce`
            while sends and self._next < last and not self.buckets[self._next].missing:
                self._send()

        return arrived

    def _send(self) -> None:
        bucket = self.buckets[self._next]
        if self._rounded is None:
            bucket.pending = self.group.sum_later(bucket.flat)
        else:
            bucket.pending = self._rounded.begin(bucket)
        self._next += 1


def _hook(weight: Tensor, arrived: Callable[[Tensor], None]) -> RemovableHandle:
    hooked = weight.register_post_accumulate_grad_hook
    handle: RemovableHandle = hooked(arrived)  # type: ignore[no-untyped-call]
    return handle
