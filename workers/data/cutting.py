"""Which samples each microbatch holds: a function of the order of the samples alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.data.errors import DataFailed
from workers.data.split import Split

Group = tuple[Tensor, int | None]
"""The samples of a microbatch, and the length to which they are padded (None: as they are)."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """`microbatch` samples each, in whole rounds of `unit` microbatches (what the replicas,
    pipelines and batches of a plan share evenly). `keep`: the samples that fill no round make
    one of smaller microbatches, alike to one sample; fewer than `unit` are left out still. With
    `buckets` a microbatch holds samples of one bucket, and each bucket may end in a smaller one.
    """

    microbatch: int
    unit: int = 1
    keep: bool = False
    buckets: tuple[int, ...] = ()

    def count(self, part: Split) -> int:
        """Microbatches of an epoch, the same for every order; 0 where nothing fills a round."""
        return len(self.groups(part, torch.arange(len(part)), None))

    def forms(self, part: Split) -> set[tuple[int, int | None]]:
        """(samples, length) of all microbatches that any epoch may have."""
        order, lengths = torch.arange(len(part)), part.lengths
        if lengths is None:
            return {(len(group), None) for group in self._even(order)}
        self.check(lengths)
        return {(len(group), bound) for group, bound in self._bucketed(order, lengths)}

    def groups(
        self, part: Split, order: Tensor, generator: torch.Generator | None
    ) -> tuple[Group, ...]:
        """The microbatches of an epoch whose samples come in this order. Buckets are mixed by
        `generator`. Raises `DataFailed` where lengths differ and no bucket takes them."""
        lengths = part.lengths
        if lengths is None:
            return tuple((group, None) for group in self._even(order))
        self.check(lengths)
        found = list(self._bucketed(order, lengths[order]))
        if generator is not None:
            found = [found[n] for n in torch.randperm(len(found), generator=generator).tolist()]
        return tuple(found[: len(found) // self.unit * self.unit])

    def padded(self, part: Split) -> tuple[tuple[Group, int], ...]:
        """Every sample once, in order, in full microbatches and whole rounds: the group and how
        many of its first samples are no padding."""
        lengths = part.lengths
        everything = torch.arange(len(part))
        if lengths is None:
            portions: list[Group] = [
                (group, None) for group in torch.split(everything, self.microbatch)
            ]
        else:
            self.check(lengths)
            whole = Cutting(self.microbatch, keep=True, buckets=self.buckets)
            portions = list(whole._bucketed(everything, lengths))
        filled = [((self._filled(group), length), len(group)) for group, length in portions]
        empty = (self._filled(portions[-1][0]), portions[-1][1]), 0
        return (*filled, *[empty] * (-len(filled) % self.unit))

    def check(self, lengths: Tensor) -> None:
        """Raise `DataFailed` where the longest sample fits no bucket."""
        longest, bounds = int(lengths.max()), self.buckets
        if not bounds:
            raise DataFailed(
                f"samples are {int(lengths.min())} to {longest} long",
                f"Give buckets, such as {max(1, longest // 2)} and {longest}.",
            )
        if longest > bounds[-1]:
            count = int((lengths > bounds[-1]).sum())
            raise DataFailed(
                f"{count} samples are longer than the last bucket of {bounds[-1]}, "
                f"the longest {longest}",
                f"Make the last bucket {longest}, or cut these samples.",
            )

    def _even(self, order: Tensor) -> tuple[Tensor, ...]:
        size = self.microbatch * self.unit
        rounds, left = divmod(len(order), size)
        full = torch.split(order[: rounds * size], self.microbatch) if rounds else ()
        if not self.keep or left < self.unit:
            return tuple(full)
        return (*full, *order[rounds * size :].tensor_split(self.unit))

    def _bucketed(self, order: Tensor, lengths: Tensor) -> Iterator[Group]:
        above = 0
        for bound in self.buckets:
            own = order[(lengths > above) & (lengths <= bound)]
            above = bound
            for group in torch.split(own, self.microbatch):
                if len(group) == self.microbatch or (self.keep and len(group)):
                    yield group, bound

    def _filled(self, group: Tensor) -> Tensor:
        return torch.cat((group, group[:1].expand(self.microbatch - len(group))))
