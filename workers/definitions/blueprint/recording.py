"""Runs a factory on shapes alone where its tensors are large, and notes how each is made."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.utils._pytree import tree_map_only

from workers.definitions.blueprint.seeded import Seeded, performed
from workers.definitions.blueprint.steps import RecordedStep, Steps
from workers.definitions.samples import tensors_of

LARGE = 2**16
"""Elements. What is smaller is made at once: it costs little, and code may look into it."""

_NEEDS_VALUES = (DataDependentOutputException, DynamicOutputShapeException)


class Shapes(FakeTensorMode):  # type: ignore[no-untyped-call]
    """A mode in which tensors have shapes and no values; a copy of a model stays in it."""

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)

    def __deepcopy__(self, memo: dict[int, object]) -> "Shapes":
        return self

    def forget(self) -> None:
        """Drop torch's notes of which tensor stands for which: a tensor that is noted cannot be
        converted by `Module.to`."""
        self.fake_tensor_converter.meta_converter.tensor_memo.clear()


class Recording(Seeded):  # type: ignore[no-untyped-call]
    """What is made inside has shapes alone from `large` elements on; `steps` say how."""

    def __init__(self, seed: int, large: int = LARGE) -> None:
        super().__init__(seed)
        self.shapes, self.steps, self._large = Shapes(), Steps(), large

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs, seed = kwargs or {}, self.own_seed(func)
        given = tensors_of((args, kwargs))
        if given and not any(isinstance(tensor, FakeTensor) for tensor in given):
            return performed(func, args, kwargs, seed)
        changed = _changed(func, args, kwargs)
        if not all(isinstance(tensor, FakeTensor) for tensor in changed):
            return self._with_values(func, args, kwargs, seed)
        args, kwargs = tree_map_only(Tensor, self._shape_of, (args, kwargs))
        try:
            with self.shapes:
                result = func(*args, **kwargs)
        except _NEEDS_VALUES:
            return self._with_values(func, args, kwargs, seed)
        self.shapes.forget()
        if not given and all(tensor.numel() < self._large for tensor in tensors_of(result)):
            return performed(func, args, kwargs, seed)
        self._note(func, args, kwargs, result, seed)
        return result

    def _note(self, func: Any, args: Any, kwargs: Any, result: Any, seed: int | None) -> None:
        changed = {self.steps.place(t).storage for t in _changed(func, args, kwargs)}
        args, kwargs = tree_map_only(Tensor, self.steps.place, (args, kwargs))
        first = self.steps.num_storages
        places = [self.steps.place(tensor) for tensor in tensors_of(result)]
        made = tuple(place if place.storage >= first else None for place in places)
        written = changed | {place.storage for place in made if place is not None}
        if written:
            self.steps.steps.append(
                RecordedStep(func, args, kwargs, made, frozenset(written), seed)
            )

    def _shape_of(self, tensor: Tensor) -> Tensor:
        """The tensor as a shape; its values of now become a step."""
        if isinstance(tensor, FakeTensor):
            return tensor
        values = tensor.detach().clone(memory_format=torch.contiguous_format)
        with self.shapes:
            shape = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        place = self.steps.place(shape)
        step = RecordedStep(values.clone, (), {}, (place,), frozenset((place.storage,)))
        self.steps.steps.append(step)
        return shape

    def _with_values(self, func: Any, args: Any, kwargs: Any, seed: int | None) -> Any:
        """The operation on the values that its tensors hold by now."""
        known = {id(t): t for t in tensors_of((args, kwargs)) if isinstance(t, FakeTensor)}
        values = dict(zip(known, self.steps.values([*known.values()]), strict=True))
        args, kwargs = tree_map_only(FakeTensor, lambda t: values[id(t)], (args, kwargs))
        return performed(func, args, kwargs, seed)


@contextmanager
def copies_are_recorded() -> Iterator[None]:
    """Inside, a deep copy of a shape is an operation like any other; torch's own copies the
    storage past every mode."""
    with patch.object(FakeTensor, "__deepcopy__", _copied, create=True):
        yield


def _copied(tensor: Tensor, memo: dict[int, object]) -> object:
    if id(tensor) not in memo:
        copy = tensor.detach().clone()
        is_weight = isinstance(tensor, nn.Parameter)
        memo[id(tensor)] = nn.Parameter(copy, tensor.requires_grad) if is_weight else copy
    return memo[id(tensor)]


def _changed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors among the arguments that the operation writes to."""
    found = []
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found += tensors_of(args[index] if index < len(args) else kwargs.get(argument.name))
    return found
