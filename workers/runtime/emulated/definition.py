"""What stands for the person's definition where nothing is computed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torch import Tensor, nn

from workers.definitions.definition import Loss
from workers.definitions.samples import Batch, Samples
from workers.definitions.text_inputs import TextInputs
from workers.definitions.units import Granularity


@dataclass(frozen=True, slots=True)
class EmulatedDefinition:
    """A `Definition` whose model is `module`; `file` is the one that it stands for."""

    file: Path
    module: nn.Module
    data_name: str = "synthetic"
    has_example: bool = False
    granularity: Granularity = "fine"
    companions: ClassVar[Mapping[str, str]] = {}
    texts: ClassVar[TextInputs] = TextInputs()
    log: ClassVar[None] = None
    metrics: ClassVar[None] = None

    @property
    def loss(self) -> Loss:
        return _nothing

    def model(self, seed: int = 0) -> nn.Module:
        return self.module

    def build(self) -> nn.Module:
        return self.module

    def example(self, batch: int) -> Batch:
        raise NotImplementedError("an emulated model takes no samples")

    def data(self) -> tuple[Batch, Batch]:
        raise NotImplementedError("an emulated model has no data")


def _nothing(output: Tensor, target: Samples) -> Tensor:
    """0, with a way back for the gradients."""
    return output.sum()
