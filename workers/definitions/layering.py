"""From a model to its layers: traced, recorded, cut where it is sound."""

from dataclasses import replace

import torch
from torch import Tensor, fx, nn

from backend.profiles.profile import ONE_LAYER, Tracing
from workers.definitions.blueprint.blueprint import mode_of
from workers.definitions.cutter import Cutter, num_bytes
from workers.definitions.layers import LayeredModel, ModelLayer
from workers.definitions.module_state.untouched import untouched
from workers.definitions.samples import Samples, tensors, tensors_of
from workers.definitions.tracing.modes import has_modes
from workers.definitions.tracing.record import Record, TensorSpec, fold_sizes, record
from workers.definitions.tracing.trace import Inputs, trace
from workers.definitions.tracing.unpacking import unpack
from workers.definitions.units import Granularity, Units

BELONGS_TOGETHER = (
    f"{ONE_LAYER}: what is kept whole, or belongs together, holds all of its weights. "
    "It trains in one stage, whose replicas share the samples."
)


def layered(
    model: nn.Module, example: Samples, granularity: Granularity = "fine", tracing: Tracing = ""
) -> LayeredModel:
    """The layers of `model` for inputs of the example's shapes; falls back to one layer.

    The result may hold a copy of `model` that shares its parameters; the model's state is as
    before. The model must run on the example's tensors, in their order; where `tracing` says how
    it is traced, both may be shapes.
    """
    inputs = tensors(example)
    traced = trace(model, inputs, tracing)
    if traced.graph is None:
        return one_layer(model, inputs, traced.notes)
    runner = fx.GraphModule(traced.model, traced.graph)
    seen = recorded(runner, inputs)
    if unpack(runner.graph, seen.packed):
        runner.recompile()
        seen = recorded(runner, inputs)
    fold_sizes(runner.graph, seen.sizes)
    units = Units(runner, traced.by_path, granularity)
    found = Cutter(runner, seen, units).layered(traced.model, traced.notes)
    if len(found.layers) == 1:
        found = replace(found, notes=(BELONGS_TOGETHER, *found.notes))
    return replace(found, tracing=traced.tracing, granularity=granularity)


def recorded(runner: fx.GraphModule, inputs: Inputs) -> Record:
    """What one run in training mode does; the module's state is as before. A tensor that has
    another shape or dtype in evaluation is told as none: it must not cross a cut."""
    with untouched(runner), mode_of(inputs):
        seen = record(runner.train(), tuple(tensor.clone() for tensor in inputs))
    if has_modes(runner.graph):
        with untouched(runner), mode_of(inputs):
            also = record(runner.eval(), tuple(tensor.clone() for tensor in inputs))
        known, packed = also.specs, also.packed
        seen.specs = {n: s for n, s in seen.specs.items() if n not in known or s.fits(known[n])}
        seen.packed = {n: parts for n, parts in seen.packed.items() if packed.get(n) == parts}
    return seen


def one_layer(model: nn.Module, inputs: Inputs, notes: tuple[str, ...]) -> LayeredModel:
    """The model as it is, for inputs of these shapes."""
    with untouched(model), torch.no_grad():
        output = model.train()(*(tensor.clone() for tensor in inputs))
    size = sum(tensor.nbytes for tensor in tensors_of(output))
    name = type(model).__name__
    weights = [*model.parameters()]
    layer = ModelLayer(
        name,
        name,
        size,
        num_bytes(weights),
        buffer_bytes=sum(buffer.nbytes for buffer in model.buffers()),
        frozen_bytes=num_bytes(weights, trained=False),
    )
    specs = tuple(TensorSpec.of(tensor) for tensor in inputs)
    scores = output.shape[-1] if isinstance(output, Tensor) and output.dim() else None
    return LayeredModel(model, None, (layer,), (), ((),), (specs,), notes, num_scores=scores)
