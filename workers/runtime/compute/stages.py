"""The stages of one rank, for microbatches of every form, and who is at fault where one raises."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.func import functional_call

from backend.profiles.state_precision import StatePrecisionKind
from workers.definitions.cut import cut
from workers.definitions.errors import ModelRaised, describe, user_traceback
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import LoadedDefinition
from workers.runtime.compute.first_values import fill
from workers.runtime.compute.kept_weights import keep_frozen
from workers.runtime.compute.local_heads.local_loss import LocalLosses
from workers.runtime.compute.model import Layers
from workers.runtime.compute.release import release
from workers.runtime.compute.stage import Precision, StageModule, Tensors, autocast
from workers.runtime.compute.tied_weights import tied_names
from workers.runtime.compute.variants import Variant, bundle_specs
from workers.runtime.failures import is_out_of_memory
from workers.runtime.samples.epoch import Form

Bounds = Sequence[tuple[int, int]]
"""The layers (first, stop) of each stage of the model."""


@dataclass(frozen=True, slots=True)
class Stages:
    """`modules` by stage number, for full microbatches; `variants` for those of other forms.

    layered  the whole model, without the values of other ranks' weights
    tied     every name of the model's state with all names of the same tensor
    split    the stages some of whose layers are split over their replicas
    """

    definition: LoadedDefinition
    layered: LayeredModel
    bounds: Bounds
    modules: dict[int, StageModule]
    variants: dict[Form, Variant]
    tied: dict[str, tuple[str, ...]]
    split: frozenset[int] = frozenset()

    def at(self, number: int, form: Form) -> StageModule:
        """The stage for microbatches of this form."""
        variant = self.variants.get(form)
        return self.modules[number] if variant is None else variant.stages[number]

    def train(self, mode: bool) -> None:
        """Put the modules into training or evaluation mode."""
        for stages in (self.modules, *(variant.stages for variant in self.variants.values())):
            for stage in stages.values():
                stage.module.train(mode)

    def buffers(self, number: int) -> dict[str, Tensor]:
        """The stage's running statistics by name."""
        return dict(self.modules[number].module.named_buffers())

    def forget_first_values(self) -> None:
        """Hold no trained weights any more: a version's tensors are put in their places before
        anything runs."""
        for stage in self.modules.values():
            for weight in stage.module.parameters():
                if weight.requires_grad:
                    weight.data = torch.empty(0, dtype=weight.dtype, device=weight.device)

    def raised(self, error: Exception, stage: int, inputs: Tensors | None) -> Exception:
        """The error as the user's, naming the stage and the layer, or without `inputs` its local
        loss; memory errors stay."""
        if is_out_of_memory(error):
            return error
        file = self.definition.file
        guilty = "its local loss" if inputs is None else self._guilty(stage, inputs)
        place = f"stage {stage}, {guilty}"
        message = f"{describe(error, file)} (raised in {place})"
        return ModelRaised(message, detail=user_traceback(error, file))

    def _guilty(self, stage: int, inputs: Tensors) -> str:
        """Which layer raises on these inputs: found by running the stage layer by layer."""
        if stage in self.split:
            return "one of its layers"  # alone, a replica cannot run those that are split
        bundle = tuple(tensor.detach() for tensor in inputs)
        weights = dict(self.modules[stage].module.named_parameters(remove_duplicate=False))
        precision = self.modules[stage].precision
        for index in range(*self.bounds[stage]):
            layer = cut(self.layered, index, index + 1)
            own: dict[str, Tensor] = {
                name: weights[name] for name, _ in layer.named_parameters(remove_duplicate=False)
            }
            try:
                with torch.no_grad(), autocast(bundle[0].device, precision):
                    bundle = functional_call(layer, own, bundle)
            except Exception:
                return f"layer {self.layered.layers[index].name}"
        return "the loss" if stage == len(self.bounds) - 1 else "no single layer"


def stages(
    definition: LoadedDefinition,
    layers: Layers,
    bounds: Bounds,
    numbers: Sequence[int],
    precision: Precision,
    kept: StatePrecisionKind,
    losses: LocalLosses | None = None,
) -> Stages:
    """The stages `numbers` of a model that is cut at `bounds`, with first values: those of the
    other stages are never made, or their memory is given back. Weights that are not trained are
    `kept` so from now on. With local `losses` no stage but the last is without one, and none makes
    gradients of its inputs."""
    last = len(bounds) - 1
    local = {
        n: losses.made(n, layers.base.specs[bounds[n][1]], definition.loss)
        for n in numbers
        if losses is not None and n < last
    }

    def cut_out(layered: LayeredModel) -> dict[int, StageModule]:
        return {n: made(n, cut(layered, *bounds[n]), layered) for n in numbers}

    def made(number: int, module: nn.Module, layered: LayeredModel) -> StageModule:
        specs = layered.specs[bounds[number][0]]
        if losses is not None:
            specs = tuple(replace(spec, requires_grad=False) for spec in specs)
        if own := local.get(number):
            module.add_module(f"local_head_{number}", own.head)
        loss = definition.loss if number == last else None
        return StageModule(module, specs, loss, precision, own)

    base, tied = layers.base, tied_names(layers.base.model)
    if base.blueprint is not None:
        fill(layers, bounds, numbers)
    modules = cut_out(base)
    variants = {
        form: Variant(cut_out(other), bundle_specs(other, bounds))
        for form, other in layers.others.items()
    }
    if base.blueprint is None:
        foreign = (cut(base, *bounds[n]) for n in range(len(bounds)) if n not in modules)
        release((stage.module for stage in modules.values()), foreign)
    for each in (modules, *(variant.stages for variant in variants.values())):
        for stage in each.values():
            keep_frozen(stage.module, kept)
    return Stages(definition, base, bounds, modules, variants, tied)
