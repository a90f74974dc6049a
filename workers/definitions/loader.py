"""A definition file to a model, its example, loss and data: imports the user's code."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from workers.definitions.errors import DefinitionFailed, describe, user_traceback

MODULE_NAME = "stageflow_definition"
Batch = tuple[Tensor, Tensor]
Loss = Callable[[Any, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Definition:
    """A loaded definition. Every method raises `DefinitionFailed` where the user's code does."""

    file: Path
    module: ModuleType

    @property
    def data_name(self) -> str:
        """The default data set: DATA, else "definition" or "synthetic" by what is defined."""
        fallback = "definition" if hasattr(self.module, "data") else "synthetic"
        return str(getattr(self.module, "DATA", fallback))

    @property
    def has_example(self) -> bool:
        return callable(getattr(self.module, "example", None))

    def model(self, seed: int = 0) -> nn.Module:
        """The model with the weights that `seed` gives."""
        torch.manual_seed(seed)
        model = self._call("model")
        if not isinstance(model, nn.Module):
            raise self._broken(f"model() returned a {type(model).__name__}, not a torch nn.Module")
        return model

    def example(self, batch: int) -> Batch:
        """`batch` inputs and targets, drawn with the generator's present state."""
        return self._pair(self._call("example", batch), f"example({batch})", batch)

    def data(self) -> tuple[Batch, Batch]:
        """The definition's own (training, held-out) data."""
        sets = self._call("data")
        if not isinstance(sets, tuple | list) or len(sets) != 2:
            raise self._broken("data() must return (training, held-out), each (inputs, targets)")
        train, held_out = (
            self._pair(getattr(part, "tensors", part), "data()", None) for part in sets
        )
        return train, held_out

    @property
    def loss(self) -> Loss:
        """The definition's `loss(output, target)`, else cross entropy over the last dimension."""
        return getattr(self.module, "loss", cross_entropy)

    def _call(self, name: str, *arguments: object) -> Any:
        function = getattr(self.module, name, None)
        if not callable(function):
            raise self._broken(f"there is no function {name}()")
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:
            raise _failed(error, self.file, f"{name}() raised") from error

    def _pair(self, value: Any, name: str, batch: int | None) -> Batch:
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise self._broken(f"{name} must return two tensors: inputs and targets")
        inputs, targets = value
        if not isinstance(inputs, Tensor) or not isinstance(targets, Tensor):
            kinds = f"{type(inputs).__name__} and {type(targets).__name__}"
            raise self._broken(f"{name} must return two tensors, not {kinds}")
        sizes = [len(tensor) if tensor.dim() else 0 for tensor in (inputs, targets)]
        if sizes[0] != sizes[1] or (batch is not None and sizes[0] != batch):
            wanted = "" if batch is None else f"; {batch} were asked for"
            raise self._broken(f"{name} gave {sizes[0]} inputs and {sizes[1]} targets{wanted}")
        return inputs, targets

    def _broken(self, text: str) -> DefinitionFailed:
        return DefinitionFailed(f"{self.file.name}: {text}")


def load(file: Path) -> Definition:
    """Import `file` into this process; raises `DefinitionFailed` with the file's own line.

    The module is registered under one fixed name, so that dataclasses, pickling and
    `super()` work in it; a second load replaces the first.
    """
    file = file.resolve()
    module = ModuleType(MODULE_NAME)
    module.__file__ = str(file)
    sys.modules[MODULE_NAME] = module
    try:
        code = compile(file.read_bytes(), str(file), "exec")
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        raise _failed(error, file, "importing the file raised") from error
    definition = Definition(file, module)
    if not callable(getattr(module, "model", None)):
        raise DefinitionFailed(
            f"{file.name}: there is no function model()",
            "Define `def model() -> nn.Module` at the top level of the file.",
        )
    return definition


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Mean cross entropy; classes are the last dimension of `output`."""
    return nn.functional.cross_entropy(output.flatten(0, -2), target.flatten())


def _failed(error: BaseException, file: Path, what: str) -> DefinitionFailed:
    advice = ""
    if isinstance(error, ModuleNotFoundError):
        advice = f"Install {error.name} where the worker runs, or do without it."
    told = describe(error, file)
    return DefinitionFailed(f"{told} ({what} it)", advice, user_traceback(error, file))
