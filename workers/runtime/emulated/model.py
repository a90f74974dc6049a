"""A profile as a model that torch can train: its layers wait, and its tensors are empty."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from backend.profiles.crossing import Crossing
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile
from workers.definitions.layers import LayeredModel, ModelLayer, Nodes
from workers.definitions.reorder import bundles
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.emulated.device import EmulatedDevice

FLOAT = 4
"""Bytes of a number that is sent."""


def layered(profile: Profile, device: EmulatedDevice, share: float) -> LayeredModel:
    """The profile's graph, every tensor with `share` of its bytes (one number at least).

    It takes one number per sample. An output that nobody reads ends there, and its layer's
    backward is not waited for.
    """
    model, graph = nn.Module(), fx.Graph()
    source = graph.placeholder("x")
    crossings = tuple(_crossings(profile))
    read: dict[int, list[fx.Node]] = {index: [] for index in range(len(profile.layers))}
    specs = {source: TensorSpec((profile.microbatch, 1), torch.float32, False)}
    layers = []
    for index, layer in enumerate(profile.layers):
        made = [each for each in crossings if each.producer == index]
        part = EmulatedLayer(layer, device, [_count(each.bytes, share) for each in made], share)
        model.add_module(f"layer{index}", part)
        inputs = read[index] or [source]
        called = graph.call_module(f"layer{index}", tuple(inputs))
        items = [graph.call_function(operator.getitem, (called, n)) for n in range(len(part.sizes))]
        learns = part.learns or any(specs[node].requires_grad for node in inputs)
        back = [learns and each.has_gradient for each in made] or [learns]
        specs |= {
            node: TensorSpec((size,), torch.float32, gradient)
            for (node, size), gradient in zip(part.outputs(items), back, strict=True)
        }
        for each, item in zip(made, items, strict=False):
            for reader in each.readers:
                read[reader].append(item)
        layers.append(_described(layer, (called, *items)))
    graph.output(items[0])
    found = bundles(graph, [layer.nodes for layer in layers], specs)
    return LayeredModel(
        model=model,
        graph=graph,
        layers=tuple(layers),
        edges=profile.graph.edges,
        bundles=found,
        specs=tuple(tuple(specs[node] for node in bundle) for bundle in found),
        crossings=tuple(
            (
                *(each.producer, each.readers, each.bytes),
                *(each.has_gradient, each.number_bytes, each.rows),
            )
            for each in crossings
        ),
    )


class EmulatedLayer(nn.Module):
    """Waits as long as `layer` takes; `sizes` are the numbers in each of its outputs."""

    def __init__(
        self, layer: Layer, device: EmulatedDevice, sizes: list[int], share: float
    ) -> None:
        super().__init__()
        self.sizes = sizes or [1]
        self._device, self._times = device, _times(layer)
        self.learns = bool(layer.parameter_bytes)
        if self.learns:
            self.weight = nn.Parameter(torch.zeros(_count(layer.parameter_bytes, share), 1))

    def outputs(self, items: list[fx.Node]) -> Iterator[tuple[fx.Node, int]]:
        """Each output's node with its size."""
        yield from zip(items, self.sizes, strict=True)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        times = self._times
        self._device.busy(times.forward)
        tokens = [_owe(self._device, times.of_inputs, *inputs)]
        if self.learns:
            alone = not any(tensor.requires_grad for tensor in inputs)  # the first layer
            seconds = times.of_weights + (times.of_inputs if alone else 0.0)
            tokens.append(_owe(self._device, seconds, self.weight))
        return _give(tuple(self.sizes), *tokens)


@dataclass(frozen=True, slots=True)
class _Times:
    """Seconds on the device: forward, backward for the inputs, backward for the weights."""

    forward: float
    of_inputs: float
    of_weights: float


def _times(layer: Layer) -> _Times:
    """The halves of a backward as a prediction has them; what has no weights has none for them."""
    half = layer.input_half if layer.parameter_bytes else layer.backward
    return _Times(layer.forward, half, layer.backward - half)


class _Wait(torch.autograd.Function):
    """One half of a backward: waits, then gives empty gradients. Forwards it is a token."""

    @staticmethod
    def forward(ctx: Any, device: EmulatedDevice, seconds: float, *inputs: Tensor) -> Tensor:
        ctx.device, ctx.seconds, ctx.shapes = device, seconds, [each.shape for each in inputs]
        return torch.zeros(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        ctx.device.busy(ctx.seconds)
        return None, None, *(torch.zeros(shape) for shape in ctx.shapes)


class _Give(torch.autograd.Function):
    """Empty outputs of a layer, where the tokens of both halves meet: a schedule that asks for
    one half waits for that alone."""

    @staticmethod
    def forward(ctx: Any, sizes: tuple[int, ...], *tokens: Tensor) -> Any:
        ctx.count = len(tokens)
        return tuple(torch.zeros(size) for size in sizes)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, *(torch.zeros(1) for _ in range(ctx.count))


_owe: Callable[..., Tensor] = _Wait.apply
_give: Callable[..., tuple[Tensor, ...]] = _Give.apply


def _crossings(profile: Profile) -> Iterator[Crossing]:
    """Tensor by tensor where the profile knows them, else each layer's output is one."""
    if profile.graph.crossings:
        yield from profile.graph.crossings
        return
    for index, layer in enumerate(profile.layers):
        readers = tuple(sorted(b for a, b in profile.graph.edges if a == index))
        if readers:
            yield Crossing(index, readers, layer.output_bytes)


def _count(num_bytes: float, share: float) -> int:
    return max(1, round(num_bytes * share / FLOAT))


def _described(layer: Layer, nodes: Nodes) -> ModelLayer:
    return ModelLayer(layer.name, layer.kind, layer.output_bytes, layer.parameter_bytes, nodes)
