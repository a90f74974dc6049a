"""From a model to its layers: traced, recorded, cut where it is sound."""

import torch
from torch import fx, nn

from workers.definitions.cutter import Cutter, num_bytes
from workers.definitions.layers import LayeredModel, ModelLayer
from workers.definitions.record import TensorSpec, fold_sizes, record
from workers.definitions.samples import Samples, tensors
from workers.definitions.trace import Inputs, tensors_of, trace, untouched
from workers.definitions.units import Granularity, Units


def layered(model: nn.Module, example: Samples, granularity: Granularity = "fine") -> LayeredModel:
    """The layers of `model` for inputs of the example's shapes; falls back to one layer.

    The result may hold a copy of `model` that shares its parameters; the model's state is as
    before. The model must run on the example's tensors, in their order.
    """
    inputs = tensors(example)
    traced = trace(model, inputs)
    if traced.graph is None:
        return _one_layer(model, inputs, traced.notes)
    runner = fx.GraphModule(traced.model, traced.graph)
    with untouched(runner):
        seen = record(runner.train(), tuple(tensor.clone() for tensor in inputs))
    fold_sizes(runner.graph, seen.sizes)
    units = Units(runner.graph, traced.by_path, granularity)
    return Cutter(runner, seen, units).layered(traced.model, traced.notes)


def _one_layer(model: nn.Module, inputs: Inputs, notes: tuple[str, ...]) -> LayeredModel:
    with untouched(model), torch.no_grad():
        output = model.train()(*(tensor.clone() for tensor in inputs))
    size = sum(tensor.nbytes for tensor in tensors_of(output))
    name = type(model).__name__
    layer = ModelLayer(name, name, size, num_bytes(model.parameters()))
    specs = tuple(TensorSpec.of(tensor) for tensor in inputs)
    return LayeredModel(model, None, (layer,), (), ((),), (specs,), notes)
