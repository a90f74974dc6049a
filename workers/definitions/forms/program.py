"""A program of torch.export (.pt2): loading it may run code, so only ranks and profilers do."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from backend.errors import first_line
from workers.definitions.definition import Loss, cross_entropy
from workers.definitions.errors import DefinitionFailed
from workers.definitions.forms.mapped_weights import weights_mapped
from workers.definitions.samples import Batch
from workers.definitions.text_inputs import TextInputs
from workers.definitions.tracing.capture import plain_graph
from workers.definitions.units import Granularity


@dataclass(frozen=True)
class ExportedModel:
    """What is in the file decides the mode: dropout stays as it was when it was exported."""

    file: Path
    program: ExportedProgram

    data_name = "synthetic"
    has_example = True
    granularity: ClassVar[Granularity] = "fine"
    log: ClassVar[None] = None
    metrics: ClassVar[None] = None
    companions: ClassVar[Mapping[str, str]] = {}
    texts: ClassVar[TextInputs] = TextInputs()

    @property
    def loss(self) -> Loss:
        """Cross entropy of the output's last dimension; a program has no loss of its own."""
        return cross_entropy

    def model(self, seed: int = 0) -> nn.Module:
        """The program's own weights, whatever the seed."""
        return self.build()

    def build(self) -> nn.Module:
        """A graph that is not traced again."""
        owner = nn.Module()
        for name, tensor in {**self.program.state_dict, **self.program.constants}.items():
            _place(owner, name, tensor)
        return fx.GraphModule(owner, plain_graph(self.program, owner))

    def example(self, batch: int) -> Batch:
        """Random inputs of the program's shapes; targets are random classes of the output."""
        inputs = tuple(self._drawn(value, batch) for value in self._given)
        with torch.no_grad():
            output = self.model()(*inputs)
        if not isinstance(output, Tensor) or output.dim() < 2:
            raise self._broken("gives no scores of classes (samples x ... x classes)")
        return inputs, torch.randint(output.shape[-1], output.shape[:-1])

    def data(self) -> tuple[Batch, Batch]:
        raise self._broken("has no data of its own: train on the synthetic set")

    @property
    def _given(self) -> list[Tensor]:
        """Its inputs as torch.export describes them."""
        names = {
            spec.arg.name
            for spec in self.program.graph_signature.input_specs
            if spec.kind is InputKind.USER_INPUT
        }
        nodes = [node for node in self.program.graph.nodes if node.name in names]
        return [node.meta["val"] for node in nodes]

    def _drawn(self, value: Tensor, batch: int) -> Tensor:
        sizes = [size if isinstance(size, int) else batch for size in value.shape]
        if not sizes or sizes[0] != batch:
            raise self._broken(
                f"was exported for {sizes[0] if sizes else 'no'} samples, {batch} were asked for; "
                "export it with a dynamic first dimension, or use that size"
            )
        if value.dtype.is_floating_point:
            return torch.randn(sizes, dtype=value.dtype)
        return torch.randint(2, sizes).to(value.dtype)

    def _broken(self, text: str) -> DefinitionFailed:
        return DefinitionFailed(f"{self.file.name} {text}")


def load_program(file: Path) -> ExportedModel:
    """Open `file`, whose weights stay there until they are used; raises `DefinitionFailed` where
    torch.export cannot."""
    try:
        with weights_mapped(file):
            return ExportedModel(file, torch.export.load(file))
    except Exception as error:
        raise DefinitionFailed(f"{file.name} cannot be loaded: {first_line(error)}") from error


def _place(owner: nn.Module, name: str, tensor: object) -> None:
    """Put a tensor under its path, with plain modules on the way."""
    *path, last = name.split(".")
    for part in path:
        if part not in owner._modules:
            owner.add_module(part, nn.Module())
        owner = owner.get_submodule(part)
    if isinstance(tensor, nn.Parameter):
        owner.register_parameter(last, tensor)
    elif isinstance(tensor, Tensor):
        owner.register_buffer(last, tensor)
