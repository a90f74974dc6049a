"""Which samples each microbatch of an epoch holds: a function of (seed, epoch, number) alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from workers.data.cutting import Cutting, Group
from workers.data.drawn import of_epoch
from workers.data.split import Split
from workers.definitions.samples import Samples, mapped, tensors

Form = tuple[int, int | None]
"""What decides the shapes of a microbatch: its samples, and their length where it differs."""


class Source(Protocol):
    """Where stages find their samples, by the number of the microbatch."""

    @property
    def first(self) -> int: ...

    def bundle(self, number: int, device: torch.device) -> tuple[Tensor, ...]:
        """The inputs as the first stage takes them."""
        ...

    def answers(self, number: int, device: torch.device) -> Samples:
        """The targets as the loss takes them."""
        ...

    def form(self, number: int) -> Form: ...

    def samples(self, number: int) -> Sequence[int]:
        """The numbers of its samples among all; () where they have none."""
        ...

    def share(self, number: int) -> float:
        """Its samples to those of a full microbatch: what its mean loss counts."""
        ...


class Padded(Source, Protocol):
    """The same with full microbatches alone."""

    def num_real(self, number: int) -> int:
        """How many samples of microbatch `number` are no padding."""
        ...


@dataclass(frozen=True, slots=True)
class Epoch:
    """The microbatches of one epoch, alike on every rank. Every rank holds the data and takes
    what its microbatches ask for, so no sample ever travels between ranks.

    The microbatch that is asked for as number 0 is the one of number `first`: those before it
    were trained on before a checkpoint. `real` is how many first samples of each are no padding.
    """

    part: Split
    groups: Sequence[Group]
    microbatch: int
    first: int = 0
    real: Sequence[int] | None = None

    @staticmethod
    def shuffled(part: Split, cutting: Cutting, seed: int, number: int, first: int = 0) -> "Epoch":
        """Epoch `number` of a run of `seed`; the samples left over are others in every epoch."""
        generator = torch.Generator().manual_seed(seed * 1_000_003 + number)
        order = torch.randperm(len(part), generator=generator)
        part = of_epoch(part, seed, number)
        return Epoch(part, cutting.groups(part, order, generator), cutting.microbatch, first)

    @staticmethod
    def in_order(part: Split, cutting: Cutting) -> "Epoch":
        """All samples once, in order, padded to full microbatches."""
        found = cutting.padded(part)
        groups = [group for group, _ in found]
        return Epoch(part, groups, cutting.microbatch, real=[count for _, count in found])

    def inputs(self, number: int) -> Samples:
        return self.part.inputs(*self.groups[self.first + number])

    def targets(self, number: int) -> Samples:
        return self.part.targets(*self.groups[self.first + number])

    def bundle(self, number: int, device: torch.device) -> tuple[Tensor, ...]:
        return tuple(tensor.to(device) for tensor in tensors(self.inputs(number)))

    def answers(self, number: int, device: torch.device) -> Samples:
        return mapped(self.targets(number), lambda tensor: tensor.to(device))

    def num_real(self, number: int) -> int:
        """How many samples of microbatch `number` are no padding."""
        size = self.form(number)[0]
        return size if self.real is None else self.real[self.first + number]

    def form(self, number: int) -> Form:
        numbers, length = self.groups[self.first + number]
        return len(numbers), length

    def samples(self, number: int) -> Sequence[int]:
        found: list[int] = self.groups[self.first + number][0].tolist()
        return found

    def share(self, number: int) -> float:
        return len(self.groups[self.first + number][0]) / self.microbatch
