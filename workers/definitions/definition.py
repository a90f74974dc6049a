"""What every form of a definition offers once it is loaded."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from workers.definitions.metrics import Log, Metrics
from workers.definitions.samples import Answers, Batch, Samples
from workers.definitions.text_inputs import TextInputs
from workers.definitions.units import Granularity

Loss = Callable[[Any, Any], Tensor]
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
Values = Mapping[str, int | float | str | bool]


@dataclass(frozen=True, slots=True)
class LossOfInputs:
    """A person's loss(output, target, inputs), called with targets that have their inputs beside
    them."""

    function: Callable[[Any, Any, Any], Tensor]

    def __call__(self, output: Any, answers: Any) -> Tensor:
        return self.function(output, answers.target, answers.inputs)


def called_as_written(function: Callable[..., Tensor]) -> Loss:
    """A loss that takes what its signature says: (output, target), or the inputs too."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a function that Python cannot look into
        return function
    wanted = [each for each in given if each.kind in _BY_PLACE and each.default is each.empty]
    return LossOfInputs(function) if len(wanted) == 3 else function


def answers(loss: Loss, inputs: Samples, targets: Samples) -> Samples:
    """The targets as the loss is given them."""
    is_done = isinstance(targets, Answers) or not isinstance(loss, LossOfInputs)
    return targets if is_done else Answers(targets, inputs)


class LoadedDefinition(Protocol):
    """Every method raises `DefinitionFailed` where the person's file is at fault."""

    @property
    def file(self) -> Path: ...

    @property
    def data_name(self) -> str:
        """The name of its default data set."""
        ...

    @property
    def has_example(self) -> bool: ...

    @property
    def granularity(self) -> Granularity:
        """What people mean by its layers, if they do not say."""
        ...

    @property
    def loss(self) -> Loss:
        """Of the model's output and the targets, a mean over the batch."""
        ...

    @property
    def log(self) -> Log | None:
        """Where the loss logs; None where it logs nothing."""
        ...

    @property
    def metrics(self) -> Metrics | None:
        """What the definition says of held-out samples beside the loss; None: nothing."""
        ...

    @property
    def companions(self) -> Mapping[str, str]:
        """Texts of the files that belong beside trained weights, by name: a config."""
        ...

    @property
    def texts(self) -> TextInputs:
        """What it says of the tokens that it takes."""
        ...

    def model(self, seed: int = 0) -> nn.Module:
        """The model with the weights that `seed` gives; it takes its inputs by position."""
        ...

    def build(self) -> nn.Module:
        """The same model, drawn from the generator's present state."""
        ...

    def example(self, batch: int) -> Batch:
        """`batch` inputs and targets, drawn with the generator's present state."""
        ...

    def data(self) -> tuple[Batch, Batch]:
        """The definition's own (training, held-out) data."""
        ...


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Mean cross entropy; classes are the last dimension of `output`."""
    return nn.functional.cross_entropy(output.flatten(0, -2), target.flatten())
