"""The same stages for microbatches of other shapes: fewer samples, or another length.

Cuts are traced for the shapes of one microbatch, so each form has graphs of its own, over the
same weights and running statistics. Every rank knows the form of every microbatch beforehand,
and so the sizes of all that it will receive.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.errors import InvalidInput
from workers.definitions.layering import layered, one_layer
from workers.definitions.layers import LayeredModel
from workers.definitions.samples import Samples, tensors
from workers.definitions.tracing.capture import captured_constants
from workers.definitions.tracing.record import TensorSpec
from workers.definitions.units import Granularity
from workers.runtime.compute.stage import StageModule
from workers.runtime.samples.epoch import Form


@dataclass(frozen=True, slots=True)
class Variant:
    """The stages of this rank for one form, and what goes into each stage of the model."""

    stages: dict[int, StageModule]
    specs: tuple[tuple[TensorSpec, ...], ...]


def bundle_specs(
    layered: LayeredModel, bounds: Sequence[tuple[int, int]]
) -> tuple[tuple[TensorSpec, ...], ...]:
    """What goes into each stage of a model that is cut at `bounds`."""
    return tuple(layered.specs[first] for first, _ in bounds)


def one_way_stages(specs: Sequence[tuple[TensorSpec, ...]]) -> tuple[int, ...]:
    """The stages to which no gradient comes back, of what goes into each stage (`bundle_specs`)."""
    return tuple(
        stage
        for stage, bundle in enumerate(specs[1:])
        if not any(spec.requires_grad for spec in bundle)
    )


def varied(
    base: LayeredModel, form: Form, inputs: Samples, granularity: Granularity
) -> LayeredModel:
    """The model's layers for another form; no training has changed `base` yet. Raises
    `InvalidInput` where they are others than the base's."""
    if base.graph is None:
        return one_layer(base.model, tensors(inputs), base.notes)
    other = layered(base.model, inputs, granularity, base.tracing if base.blueprint else "")
    if base.blueprint is not None:
        base.blueprint.check(other.model)
    mine, theirs = ([layer.name for layer in each.layers] for each in (base, other))
    if mine != theirs:
        size, length = form
        shape = f"{size} samples" + (f" of length {length}" if length else "")
        raise InvalidInput(
            f"for microbatches of {shape} the model has {len(theirs)} layers, and {len(mine)} "
            "for full ones, so one plan does not cut both",
            "Leave out the samples that are left over (last = drop), or use one bucket.",
        )
    _share_state(other, base)
    return other


def _share_state(other: LayeredModel, base: LayeredModel) -> None:
    """Let what the model keeps from forward to forward be one in both: its buffers, and the modules
    that are called as a whole, with all that these keep. Constants that a capture found belong to
    the form."""
    if other.model is base.model or other.graph is None:
        return
    for name in dict(base.model.named_buffers()).keys() - captured_constants(base.model):
        path, _, key = name.rpartition(".")
        other.model.get_submodule(path)._buffers[key] = base.model.get_buffer(name)
    for node in other.graph.nodes:
        if node.op == "call_module":
            path, _, key = str(node.target).rpartition(".")
            called = base.model.get_submodule(str(node.target))
            other.model.get_submodule(path)._modules[key] = called
