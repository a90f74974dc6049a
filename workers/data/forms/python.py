"""A Python file with a class `Dataset`: a person's own code, which runs in the rank's sandbox."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import default_collate

from backend.runs.request.data_forms import FORMS
from workers.data.errors import DataFailed
from workers.data.files import there
from workers.data.request import DataRequest
from workers.data.split import DataSet, divided
from workers.data.values import finite
from workers.definitions.errors import describe
from workers.definitions.samples import Batch, Samples, is_samples, mapped

MODULE_NAME = "stageflow_data"


@dataclass(slots=True)
class Indexed:
    """`dataset[n]` is (inputs, target); samples are put together as torch's own loader does.
    The last microbatch is kept, since inputs and targets are asked for apart."""

    dataset: Any
    file: Path
    lengths: None = None
    labels: None = None
    is_at_hand: bool = False
    _last: tuple[tuple[int, ...], Batch] | None = field(default=None, init=False)

    def __len__(self) -> int:
        with _blaming(self.file, "its length"):
            return len(self.dataset)

    def inputs(self, numbers: Tensor, length: int | None = None) -> Samples:
        return self._taken(numbers)[0]

    def targets(self, numbers: Tensor, length: int | None = None) -> Samples:
        return self._taken(numbers)[1]

    def _taken(self, numbers: Tensor) -> Batch:
        wanted = tuple(numbers.tolist())
        if self._last is None or self._last[0] != wanted:
            self._last = wanted, self._batch(wanted)
        return self._last[1]

    def _batch(self, wanted: tuple[int, ...]) -> Batch:
        with _blaming(self.file, f"samples {wanted[0]} ..."):
            samples = default_collate([self.dataset[number] for number in wanted])
        if not isinstance(samples, list | tuple) or len(samples) != 2:
            raise DataFailed(f"{self.file.name}: a sample is not (inputs, target)")
        if not all(map(is_samples, samples)):
            raise DataFailed(f"{self.file.name}: a sample holds something that is not a tensor")
        name = f"samples {', '.join(map(str, wanted[:3]))}"
        inputs, targets = (tuple(s) if isinstance(s, list) else s for s in samples)
        checked = mapped(inputs, lambda t: finite(_single(t), name, self.file.name))
        return checked, mapped(targets, _single)


def load(request: DataRequest) -> DataSet:
    """`Dataset("train")` and `Dataset("test")` where the class takes the name of a part, else
    `Dataset()`, of which a share is held out. Raises `DataFailed`."""
    file = there(request.path, FORMS["python"].path)
    make = getattr(_module(file), "Dataset", None)
    if not callable(make):
        raise DataFailed(
            f"{file.name} has no class Dataset", "Define `class Dataset` at the file's top level."
        )
    with _blaming(file, "Dataset()"):
        takes_part = bool(inspect.signature(make).parameters)
    if not takes_part:
        return divided(_indexed(make, file), request.spec.held_out, file.name)
    train, held_out = (_indexed(make, file, part) for part in ("train", "test"))
    return DataSet(train, held_out if len(held_out) else None, file.name)


def _indexed(make: Callable[..., Any], file: Path, *part: str) -> Indexed:
    with _blaming(file, "Dataset()"):
        dataset = make(*part)
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise DataFailed(f"{file.name}: a Dataset needs __len__ and __getitem__")
    return Indexed(dataset, file)


def _module(file: Path) -> ModuleType:
    module = ModuleType(MODULE_NAME)
    module.__file__ = str(file)
    with _blaming(file, "importing it"):
        exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    return module


@contextmanager
def _blaming(file: Path, what: str) -> Iterator[None]:
    try:
        yield
    except DataFailed:
        raise
    except (Exception, SystemExit) as error:
        raise DataFailed(
            f"{describe(error, file)} (raised by {what})", "Correct the file."
        ) from error


def _single(tensor: Tensor) -> Tensor:
    """Python's floats are double; models are single."""
    return tensor.float() if tensor.dtype == torch.float64 else tensor
