"""The data sets by name, and which samples each microbatch of an epoch holds.

A data set is two pairs (inputs, targets), to train on and held out; every rank holds
all of it and takes what its microbatches ask for, so no sample ever travels between ranks.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from backend.errors import InvalidInput
from backend.runs.spec import DataSpec
from workers.definitions.definition import Definition
from workers.definitions.samples import Batch, Samples, mapped, num_samples, tensors


@dataclass(frozen=True, slots=True)
class DataSet:
    """`train` and `held_out` are (inputs, targets) with the samples along dimension 0."""

    train: Batch
    held_out: Batch

    @property
    def num_train(self) -> int:
        return num_samples(self.train[0])

    @property
    def num_held_out(self) -> int:
        return num_samples(self.held_out[0])

    def first(self, count: int) -> Batch:
        """The first `count` samples to train on, from the start again where they are fewer."""
        inputs, targets = self.train
        chosen = torch.arange(count) % self.num_train
        return _taken(inputs, chosen), _taken(targets, chosen)


Source = Callable[[DataSpec, Definition], DataSet]


def digits(spec: DataSpec, definition: Definition) -> DataSet:
    """scikit-learn's 1,797 handwritten digits: 1x8x8 in [0, 1]; 1,437 to train, 360 held out.

    The split is stratified by class and always the same.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=0)
    inputs = [torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16 for x in parts[:2]]
    targets = [torch.tensor(y, dtype=torch.long) for y in parts[2:]]
    return DataSet((inputs[0], targets[0]), (inputs[1], targets[1]))


def synthetic(spec: DataSpec, definition: Definition) -> DataSet:
    """`spec.samples` samples of the definition's example, and a quarter as many held out."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        held_out = max(1, spec.samples // 4)
        return DataSet(definition.example(spec.samples), definition.example(held_out))


def own(spec: DataSpec, definition: Definition) -> DataSet:
    """What the definition's `data()` returns."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return DataSet(*definition.data())


CATALOG: dict[str, Source] = {"digits": digits, "synthetic": synthetic, "definition": own}


def load(spec: DataSpec, definition: Definition) -> DataSet:
    """The data set that `spec` names, or the definition's default; raises `InvalidInput`."""
    name = spec.name or definition.data_name
    if name not in CATALOG:
        raise InvalidInput(
            f"there is no data set {name!r}", f"Choose one of {', '.join(sorted(CATALOG))}."
        )
    return CATALOG[name](spec, definition)


def example(definition: Definition, batch: int) -> Batch:
    """One batch of inputs and targets: the definition's `example`, else its data's first ones."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if definition.has_example:
            return definition.example(batch)
    return load(DataSpec(), definition).first(batch)


def _taken(samples: Samples, chosen: Tensor) -> Samples:
    return mapped(samples, lambda tensor: tensor[chosen])


@dataclass(frozen=True, slots=True)
class Epoch:
    """The samples of one epoch, shuffled by (seed, number), alike on every rank.

    `microbatches` may be fewer than the data fills: the samples left over are others in
    every epoch. The microbatch that is asked for as number 0 is the one of number `first`:
    those before it were trained on before a checkpoint.
    """

    data: Batch
    order: Tensor
    microbatch: int
    microbatches: int
    first: int = 0

    @staticmethod
    def shuffled(
        data: Batch, microbatch: int, microbatches: int, seed: int, number: int, first: int = 0
    ) -> "Epoch":
        generator = torch.Generator().manual_seed(seed * 1_000_003 + number)
        order = torch.randperm(num_samples(data[0]), generator=generator)
        return Epoch(data, order, microbatch, microbatches, first)

    @staticmethod
    def in_order(data: Batch, microbatch: int, microbatches: int) -> "Epoch":
        """All samples once, in order; the last microbatches are padded with sample 0."""
        order = torch.zeros(microbatch * microbatches, dtype=torch.long)
        size = num_samples(data[0])
        order[:size] = torch.arange(size)
        return Epoch(data, order, microbatch, microbatches)

    def inputs(self, number: int) -> Samples:
        return _taken(self.data[0], self._samples(number))

    def targets(self, number: int) -> Samples:
        return _taken(self.data[1], self._samples(number))

    def bundle(self, number: int, device: torch.device) -> tuple[Tensor, ...]:
        """The inputs as the first stage takes them."""
        return tuple(tensor.to(device) for tensor in tensors(self.inputs(number)))

    def answers(self, number: int, device: torch.device) -> Samples:
        """The targets as the loss takes them."""
        return mapped(self.targets(number), lambda tensor: tensor.to(device))

    def num_real(self, number: int) -> int:
        """How many samples of microbatch `number` are no padding."""
        return max(0, min(self.microbatch, num_samples(self.data[0]) - number * self.microbatch))

    def _samples(self, number: int) -> Tensor:
        place = (self.first + number) * self.microbatch
        return self.order[place : place + self.microbatch]
