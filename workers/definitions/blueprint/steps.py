"""What a factory did to its tensors, step by step, and the same done again for some of them.

A tensor is known by its storage and where it lies in it, so views need no step of their own:
a step is an operation that made a storage or wrote to one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map_only

from workers.definitions.blueprint.seeded import Operation, performed
from workers.definitions.samples import tensors_of

_FILLS = frozenset({"normal_", "uniform_", "zero_", "fill_", "copy_"})
"""Operations whose result does not depend on what the tensor held before."""


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where a tensor lies in a numbered storage."""

    storage: int
    dtype: torch.dtype
    device: torch.device
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One operation; places stand for tensors in `args` and `kwargs`. `made`: the place of each
    of its results whose storage is new, None for the others. `written`: storages that were made
    or changed. `seed`: with which it draws."""

    operation: Operation
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    made: tuple[TensorPlace | None, ...]
    written: frozenset[int]
    seed: int | None = None

    @property
    def read(self) -> frozenset[int]:
        return frozenset(place.storage for place in _places((self.args, self.kwargs)))


@dataclass(slots=True)
class Steps:
    """The steps so far. Storages of shapes hold no memory; they are held so that the address of
    one names no other."""

    steps: list[RecordedStep] = field(default_factory=list)
    _storages: list[torch.UntypedStorage] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)

    @property
    def num_storages(self) -> int:
        return len(self._storages)

    def place(self, tensor: Tensor) -> TensorPlace:
        """Where a tensor of shapes lies; a storage that was never seen gets the next number."""
        storage = tensor.untyped_storage()
        number = self._numbers.setdefault(storage._cdata, len(self._storages))
        if number == len(self._storages):
            self._storages.append(storage)
        shape, stride = tuple(tensor.shape), tuple(map(int, tensor.stride()))
        return TensorPlace(
            number, tensor.dtype, tensor.device, shape, stride, int(tensor.storage_offset())
        )

    def values(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """What the tensors hold by now, made by the steps that these need and no others. At no
        time more is held than the tensors and what the steps to come still read."""
        places = [self.place(tensor) for tensor in tensors]
        storages: dict[int, torch.UntypedStorage] = {}

        def at(place: TensorPlace) -> Tensor:
            empty = torch.empty(0, dtype=place.dtype, device=place.device)
            return empty.set_(storages[place.storage], place.offset, place.size, place.stride)

        with _disable_current_modes(), torch.no_grad():
            for step, held in self._needed(places):
                args, kwargs = tree_map_only(TensorPlace, at, (step.args, step.kwargs))
                result = performed(step.operation, args, kwargs, step.seed)
                for place, tensor in zip(step.made, tensors_of(result), strict=True):
                    if place is not None:
                        storages[place.storage] = _laid_out(tensor, place).untyped_storage()
                for number in storages.keys() - held:
                    del storages[number]
            return [at(place) for place in places]

    def _needed(self, places: Iterable[TensorPlace]) -> list[tuple[RecordedStep, frozenset[int]]]:
        """The steps behind the places in their order, each with the storages that are needed
        after it. What is written over before anybody reads it (`stale`) is not made."""
        wanted, stale = {place.storage for place in places}, set[int]()
        found = []
        for step in reversed(self.steps):
            made = {place.storage for place in step.made if place is not None}
            if not (step.written & (wanted - stale) or made & wanted):
                continue
            found.append((step, frozenset(wanted)))
            wanted = (wanted | step.read) - made
            stale = (stale - step.read - made) | self._overwritten(step)
        return found[::-1]

    def _overwritten(self, step: RecordedStep) -> set[int]:
        """The storage that the step fills whatever was in it."""
        name = getattr(step.operation, "__name__", "").split(".")[0]
        if name not in _FILLS:
            return set()
        target: TensorPlace = step.args[0]
        num_bytes = torch.Size(target.size).numel() * target.dtype.itemsize
        others = _places((step.args[1:], step.kwargs))
        is_whole = num_bytes == self._storages[target.storage].nbytes()
        is_read = any(place.storage == target.storage for place in others)
        return {target.storage} if is_whole and not is_read else set()


def _laid_out(tensor: Tensor, place: TensorPlace) -> Tensor:
    """The tensor as it lies in its place: some kernels choose other strides than shapes alone."""
    if tensor.stride() == place.stride and tensor.storage_offset() == place.offset:
        return tensor
    return torch.empty_strided(
        place.size, place.stride, dtype=place.dtype, device=place.device
    ).copy_(tensor)


def _places(tree: Any) -> list[TensorPlace]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, TensorPlace)]
