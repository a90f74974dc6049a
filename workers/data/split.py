"""Samples by their number: what every form of data gives, and how a data set is parted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
from torch import Tensor

from workers.definitions.samples import Answers, Batch, Samples, mapped, num_samples


class Split(Protocol):
    """Samples to train on, or held out. `numbers` are int64 places among them."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> Tensor | None:
        """How long each sample is; None where all are alike."""
        ...

    @property
    def is_at_hand(self) -> bool:
        """Whether samples lie in memory, so that loading them takes no time to speak of."""
        ...

    @property
    def labels(self) -> Tensor | None:
        """All targets in one tensor; None where they are not known without loading samples."""
        ...

    def inputs(self, numbers: Tensor, length: int | None = None) -> Samples:
        """The inputs of these samples, padded to `length` where their lengths differ."""
        ...

    def targets(self, numbers: Tensor, length: int | None = None) -> Samples:
        """Their targets likewise."""
        ...


@dataclass(frozen=True, slots=True)
class TensorSplit:
    """Inputs and targets in memory, samples first."""

    all_inputs: Samples
    all_targets: Samples
    lengths: None = None
    is_at_hand: bool = True

    def __len__(self) -> int:
        return num_samples(self.all_inputs)

    @property
    def labels(self) -> Tensor | None:
        return self.all_targets if isinstance(self.all_targets, Tensor) else None

    def inputs(self, numbers: Tensor, length: int | None = None) -> Samples:
        return mapped(self.all_inputs, lambda tensor: tensor[numbers])

    def targets(self, numbers: Tensor, length: int | None = None) -> Samples:
        return mapped(self.all_targets, lambda tensor: tensor[numbers])


@dataclass(frozen=True, slots=True)
class Subset:
    """Some samples of another split, whose inputs may be changed as they are loaded."""

    whole: Split
    numbers: Tensor
    change: Callable[[Tensor], Tensor] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def lengths(self) -> Tensor | None:
        found = self.whole.lengths
        return None if found is None else found[self.numbers]

    @property
    def labels(self) -> Tensor | None:
        found = self.whole.labels
        return None if found is None else found[self.numbers]

    @property
    def is_at_hand(self) -> bool:
        return self.whole.is_at_hand

    def inputs(self, numbers: Tensor, length: int | None = None) -> Samples:
        found = self.whole.inputs(self.numbers[numbers], length)
        return found if self.change is None else mapped(found, self.change)

    def targets(self, numbers: Tensor, length: int | None = None) -> Samples:
        return self.whole.targets(self.numbers[numbers], length)


@dataclass(frozen=True, slots=True)
class Answered:
    """The samples of another split, whose targets have their inputs beside them."""

    whole: Split

    def __len__(self) -> int:
        return len(self.whole)

    @property
    def lengths(self) -> Tensor | None:
        return self.whole.lengths

    @property
    def labels(self) -> Tensor | None:
        return self.whole.labels

    @property
    def is_at_hand(self) -> bool:
        return self.whole.is_at_hand

    def inputs(self, numbers: Tensor, length: int | None = None) -> Samples:
        return self.whole.inputs(numbers, length)

    def targets(self, numbers: Tensor, length: int | None = None) -> Samples:
        return Answers(self.whole.targets(numbers, length), self.whole.inputs(numbers, length))


@dataclass(frozen=True, slots=True)
class DataSet:
    """What is trained on, and what is held out (None: nothing). `name` is for messages, `notes`
    are for the run's log. Of tokens: how many a tokenizer knows (None: these are none), and its
    files, which belong beside the trained model."""

    train: Split
    held_out: Split | None
    name: str = "the data"
    notes: tuple[str, ...] = ()
    vocabulary: int | None = None
    companions: Mapping[str, str] = field(default_factory=dict)

    @property
    def num_train(self) -> int:
        return len(self.train)

    @property
    def num_held_out(self) -> int:
        return 0 if self.held_out is None else len(self.held_out)

    def answered(self) -> "DataSet":
        """The same with the inputs beside the targets."""
        held_out = None if self.held_out is None else Answered(self.held_out)
        return replace(self, train=Answered(self.train), held_out=held_out)

    def first(self, count: int, length: int | None = None) -> Batch:
        """The first `count` samples to train on, from the start again where they are fewer;
        of those whose lengths differ, the first that are no longer than `length`, held out ones
        where no other is as short."""
        part, fits = self.train, _fitting(self.train, length)
        if not len(fits) and self.held_out is not None:
            part, fits = self.held_out, _fitting(self.held_out, length)
        chosen = fits[torch.arange(count) % len(fits)]
        return part.inputs(chosen, length), part.targets(chosen, length)


def _fitting(part: Split, length: int | None) -> Tensor:
    everything, lengths = torch.arange(len(part)), part.lengths
    if lengths is None or length is None:
        return everything
    return everything[lengths <= length]


def divided(whole: Split, share: float, name: str) -> DataSet:
    """A data set with `share` of the samples held out, always the same ones."""
    train, held_out = rows_held_out(len(whole), share)
    if not len(held_out):
        return DataSet(whole, None, name)
    return DataSet(Subset(whole, train), Subset(whole, held_out), name)


def rows_held_out(count: int, share: float) -> tuple[Tensor, Tensor]:
    """The numbers of the samples to train on, and of those held out, each in their order."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    held_out = max(0, min(round(share * count), count - 1))
    return order[held_out:].sort().values, order[:held_out].sort().values
