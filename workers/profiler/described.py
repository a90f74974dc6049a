"""A profile without running anything: shapes and operations of a model without weights."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from backend.profiles.crossing import Crossing, TiedWeight
from backend.profiles.devices import peak
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.roofline import BACKWARD, Work, roofline
from backend.runs.request.spec import ProfileSpec
from workers.data import catalog
from workers.definitions.definition import LoadedDefinition
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import load
from workers.definitions.prepare import prepare
from workers.definitions.samples import tensors
from workers.devices import versions
from workers.profiler.measure import benches
from workers.profiler.sizes import LayerSizes, flops, saved_bytes
from workers.runtime.compute.stage import autocast

META = torch.device("meta")
ATTENTION = "scaled_dot_product_attention"


@dataclass(frozen=True, slots=True)
class Sketch:
    """A model without values: its layers and their sizes."""

    layered: LayeredModel
    sizes: LayerSizes


def sketched(definition: LoadedDefinition, spec: ProfileSpec) -> Sketch:
    """The definition's model on tensors that have shapes alone; nothing of its size is allocated.

    Raises what `prepare` raises.
    """
    with META, autocast(META, spec.precision):
        inputs, targets = catalog.example(definition, spec.microbatch)
        layered = prepare(definition, (inputs, targets), granularity=spec.granularity or None)
        _fuse_attention(layered)
        layers, _ = benches(layered, definition.loss, spec.precision)
        operations = flops(layers, tensors(inputs), targets)
        saved = saved_bytes(layers, tensors(inputs), targets)
        return Sketch(layered, LayerSizes(saved, operations))


def described(name: str, definition_file: Path, spec: ProfileSpec) -> Profile:
    """Layers, bytes, kept activations and operations as they would be measured; seconds from
    the roofline of `spec.peak`. Nothing of the model's size is allocated.

    Raises what `prepare` raises; a model that cannot be captured is one layer without sizes.
    """
    found = sketched(load(definition_file, spec.parameters), spec)
    layered = found.layered
    fastest = peak(spec.peak, spec.precision)
    profile = roofline(name, _work(found), layered.edges, spec.microbatch, fastest)
    sized = (
        replace(
            layer,
            saved_bytes=kept,
            flops=count,
            buffer_bytes=of.buffer_bytes,
            frozen_bytes=of.frozen_bytes,
        )
        for layer, kept, count, of in zip(
            profile.layers, found.sizes.saved, found.sizes.flops, layered.layers, strict=True
        )
    )
    return replace(
        profile,
        graph=graph_of(layered, sized),
        notes=(*profile.notes, *layered.notes),
        parameters=spec.parameters,
        granularity=spec.granularity,
        precision=spec.precision,
        versions=versions(),
    )


def graph_of(layered: LayeredModel, layers: Iterable[Layer]) -> ModelGraph:
    """The model's graph with `layers` as its profiled ones."""
    crossings = tuple(Crossing(*crossing) for crossing in layered.crossings)
    tied_weights = tuple(TiedWeight(*tie) for tie in layered.tied_weights)
    return ModelGraph(tuple(layers), layered.edges, crossings, tied_weights)


def _fuse_attention(layered: LayeredModel) -> None:
    """Let attention keep what its fused kernels keep; meta tensors would take the plain way,
    which keeps a matrix of length x length."""
    for layer in layered.layers:
        for node in layer.nodes:
            if getattr(node.target, "__name__", "").startswith(ATTENTION):
                node.target = _fused


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch's scaled_dot_product_attention by the fused kernel of CPUs, without dropout."""
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (tensor.repeat_interleave(groups, -3) for tensor in (key, value))
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    result: Tensor = kernel(query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)[0]
    return result


def _work(sketch: Sketch) -> list[Work]:
    """What each layer does and moves: what it reads, what it hands on, its weights."""
    layered = sketch.layered
    read = [0] * len(layered.layers)
    for _, readers, size, *_ in layered.crossings:
        for reader in readers:
            read[reader] += size
    return [
        Work(
            layer.name,
            layer.kind,
            count,
            float(read[index] + layer.output_bytes + layer.parameter_bytes + layer.frozen_bytes),
            layer.output_bytes,
            layer.parameter_bytes,
            _backward(layered, index),
        )
        for index, (layer, count) in enumerate(zip(layered.layers, sketch.sizes.flops, strict=True))
    ]


def _backward(layered: LayeredModel, index: int) -> float:
    """How many times as long as its forward a layer's backward takes: a product for the inputs'
    gradients, if they have any, and one for those of the weights that are trained."""
    layer, crossings = layered.layers[index], layered.crossings
    gives = any(made == index and has_gradient for made, _, _, has_gradient, *_ in crossings)
    if not gives and index < len(layered.layers) - 1:
        return 0.0
    if not layer.frozen_bytes:
        return BACKWARD
    reads = any(index in readers and has_gradient for _, readers, _, has_gradient, *_ in crossings)
    return reads + layer.parameter_bytes / (layer.parameter_bytes + layer.frozen_bytes)
