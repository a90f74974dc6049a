"""A Python file with a factory: imports the user's code."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from torch import Tensor, nn

from workers.definitions.blueprint.seeded import seeded
from workers.definitions.definition import Loss, Values, called_as_written, cross_entropy
from workers.definitions.errors import DefinitionFailed, describe, user_traceback
from workers.definitions.metrics import Log, Metrics
from workers.definitions.module_state.module_state import MODULE_NAME
from workers.definitions.samples import Batch, is_samples, num_samples
from workers.definitions.text_inputs import TextInputs
from workers.definitions.units import Granularity


@dataclass(frozen=True, slots=True)
class PythonFile:
    """A loaded file. `parameters` go to every function that names them."""

    file: Path
    module: ModuleType
    parameters: Values
    _log: Log = field(default_factory=Log)

    granularity: ClassVar[Granularity] = "fine"

    companions: ClassVar[Mapping[str, str]] = {}
    texts: ClassVar[TextInputs] = TextInputs()

    @property
    def data_name(self) -> str:
        """DATA, else "definition" or "synthetic" by what is defined."""
        fallback = "definition" if hasattr(self.module, "data") else "synthetic"
        return str(getattr(self.module, "DATA", fallback))

    @property
    def has_example(self) -> bool:
        return callable(getattr(self.module, "example", None))

    def model(self, seed: int = 0) -> nn.Module:
        return seeded(self.build, seed)

    def build(self) -> nn.Module:
        model = self._call("model")
        if not isinstance(model, nn.Module):
            raise self._broken(f"model() returned a {type(model).__name__}, not a torch nn.Module")
        return model

    def example(self, batch: int) -> Batch:
        return self._pair(self._call("example", batch), f"example({batch})", batch)

    def data(self) -> tuple[Batch, Batch]:
        sets = self._call("data")
        if not isinstance(sets, tuple | list) or len(sets) != 2:
            raise self._broken("data() must return (training, held-out), each (inputs, targets)")
        train, held_out = (
            self._pair(getattr(part, "tensors", part), "data()", None) for part in sets
        )
        return train, held_out

    @property
    def loss(self) -> Loss:
        """The file's `loss(output, target)` or `loss(output, target, inputs)`, else cross entropy
        over the last dimension; one with a parameter `log` is given what logs."""
        loss: Callable[..., Tensor] = getattr(self.module, "loss", cross_entropy)
        return called_as_written(partial(loss, log=self._log) if _logs(loss) else loss)

    @property
    def log(self) -> Log | None:
        return self._log if _logs(getattr(self.module, "loss", None)) else None

    @property
    def metrics(self) -> Metrics | None:
        """The file's `metrics(output, target)`."""
        return getattr(self.module, "metrics", None)

    def _call(self, name: str, *arguments: object) -> Any:
        function = getattr(self.module, name, None)
        if not callable(function):
            raise self._broken(f"there is no function {name}()")
        try:
            return function(*arguments, **_named_by(function, self.parameters))
        except (Exception, SystemExit) as error:
            raise _failed(error, self.file, f"{name}() raised") from error

    def _pair(self, value: Any, name: str, batch: int | None) -> Batch:
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise self._broken(f"{name} must return two tensors: inputs and targets")
        if not all(map(is_samples, value)):
            kinds = " and ".join(type(each).__name__ for each in value)
            raise self._broken(
                f"{name} must return two tensors (or tuples or dicts of them), not {kinds}"
            )
        sizes = [num_samples(samples) for samples in value]
        if sizes[0] != sizes[1] or sizes[0] < 0 or (batch is not None and sizes[0] != batch):
            wanted = "" if batch is None else f"; {batch} were asked for"
            raise self._broken(f"{name} gave {sizes[0]} inputs and {sizes[1]} targets{wanted}")
        inputs, targets = (tuple(each) if isinstance(each, list) else each for each in value)
        return inputs, targets

    def _broken(self, text: str) -> DefinitionFailed:
        return DefinitionFailed(f"{self.file.name}: {text}")


def load_python(file: Path, parameters: Values) -> PythonFile:
    """Import `file` into this process; raises `DefinitionFailed` with the file's own line.

    The module is registered under one fixed name, so that dataclasses, pickling and
    `super()` work in it; a second load replaces the first.
    """
    module = ModuleType(MODULE_NAME)
    module.__file__ = str(file)
    sys.modules[MODULE_NAME] = module
    try:
        code = compile(file.read_bytes(), str(file), "exec")
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        raise _failed(error, file, "importing the file raised") from error
    factory = getattr(module, "model", None)
    if not callable(factory):
        raise DefinitionFailed(
            f"{file.name}: there is no function model()",
            "Define `def model() -> nn.Module` at the top level of the file.",
        )
    functions = [factory, getattr(module, "example", None), getattr(module, "data", None)]
    known = {name for each in functions if callable(each) for name in _named_by(each, parameters)}
    if unknown := sorted(parameters.keys() - known):
        raise DefinitionFailed(
            f"{file.name}: no function has a parameter {', '.join(unknown)}",
            "Parameters are the arguments with defaults of model(), example() and data().",
        )
    metrics = getattr(module, "metrics", None)
    if metrics is not None and not callable(metrics):
        raise DefinitionFailed(
            f"{file.name}: metrics is a {type(metrics).__name__}, not a function",
            "Define `def metrics(output, target) -> dict`, or give it another name.",
        )
    return PythonFile(file, module, parameters)


def _named_by(function: Any, parameters: Values) -> dict[str, Any]:
    """Those of `parameters` that the function has an argument for."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in parameters.items() if name in names}


def _logs(loss: Any) -> bool:
    try:
        return callable(loss) and "log" in inspect.signature(loss).parameters
    except ValueError:  # a built-in function without a signature
        return False


def _failed(error: BaseException, file: Path, what: str) -> DefinitionFailed:
    advice = ""
    if isinstance(error, ModuleNotFoundError):
        advice = f"Install {error.name} where the worker runs, or do without it."
    told = describe(error, file)
    return DefinitionFailed(f"{told} ({what} it)", advice, user_traceback(error, file))
