"""The layers of a stage as channels see them: one that may be split, with what follows it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

SPLIT_KINDS = frozenset(
    {"Linear", "Conv1d", "Conv2d", "Conv3d", "Conv1D", "Embedding", "EmbeddingBag"}
)
"""Kinds of layers whose output is a sum over input channels for each output channel (Conv1D is
the linear layer of Hugging Face's GPT-2)."""
BY_CHANNEL = frozenset(
    {"ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "LeakyReLU", "ELU", "Hardswish", "Dropout"}
    | {"Dropout2d", "MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d", "AdaptiveAvgPool2d"}
    | {"relu", "gelu", "silu", "tanh", "sigmoid", "dropout", "max_pool2d", "avg_pool2d"}
)
"""Kinds without weights, modules and functions, that compute each channel by itself."""


@dataclass(frozen=True, slots=True)
class ChannelUnit:
    """Layers `first` up to, not including, `stop`: one, and what computes its output's channels
    one by one. Bytes and seconds are of one microbatch on the profiled device.

    weights    bytes of the first layer's trainable parameters
    may_split  whether it may be split by channels
    is_joined  whether it reads what the unit before hands on, nothing else, and alone
    read       bytes of its input; `read_back` of the input's gradient
    made       bytes of the first layer's own output
    handed     bytes of the last layer's output; `handed_back` of its gradient
    forward    seconds of the layers behind the first; `backward` likewise
    """

    first: int
    stop: int
    weights: int
    may_split: bool
    is_joined: bool
    read: int
    read_back: int
    made: int
    handed: int
    handed_back: int
    forward: float = 0.0
    backward: float = 0.0


def units(profile: Profile, first: int, stop: int) -> tuple[ChannelUnit, ...]:
    """Those of the stage of layers `first` up to, not including, `stop`.

    A layer may be split whose kind is known (`SPLIT_KINDS`), whose weights are trained and its
    own, and whose input is known. What an embedding reads is taken to be no larger than what it
    makes: numbers of rows. The profile tells no numbers of channels, so that one may have fewer of
    them than its stage has replicas, or groups of them.
    """
    return tuple(_units(_Graph(profile.graph), first, stop))


def _units(graph: "_Graph", first: int, stop: int) -> Iterator[ChannelUnit]:
    start = first
    while start < stop:
        end = start + 1
        while end < stop and graph.is_chain(end) and graph.by_channel(end):
            end += 1
        yield _unit(graph, start, end, start > first and graph.is_chain(start))
        start = end


def _unit(graph: "_Graph", start: int, end: int, is_joined: bool) -> ChannelUnit:
    layer, following = graph.layers[start], graph.layers[start + 1 : end]
    read, read_back = graph.graph.read_bytes[start], graph.read_back[start]
    looks_up = layer.kind.startswith("Embedding")
    return ChannelUnit(
        start,
        end,
        layer.parameter_bytes,
        _may_split(layer, start in graph.tied, bool(read) or looks_up),
        is_joined,
        read or (layer.output_bytes if looks_up else 0),
        0 if looks_up else read_back,
        layer.output_bytes,
        graph.layers[end - 1].output_bytes,
        graph.handed_back(end - 1),
        sum(each.forward for each in following),
        sum(each.backward for each in following),
    )


def _may_split(layer: Layer, is_tied: bool, is_known: bool) -> bool:
    is_trained = layer.parameter_bytes > 0 and not layer.frozen_bytes
    return layer.kind in SPLIT_KINDS and is_trained and not is_tied and is_known


@dataclass(frozen=True)
class _Graph:
    """What the layers of `graph` read of each other."""

    graph: ModelGraph

    @property
    def layers(self) -> tuple[Layer, ...]:
        return self.graph.layers

    def by_channel(self, layer: int) -> bool:
        found = self.layers[layer]
        return found.kind in BY_CHANNEL and not found.parameter_bytes + found.frozen_bytes

    def is_chain(self, layer: int) -> bool:
        """Whether it reads the layer before and nothing else, and nothing else reads that."""
        return self._producers[layer] == {layer - 1} and self._readers[layer - 1] == {layer}

    def handed_back(self, layer: int) -> int:
        """Bytes of the gradient of its output; of a model's end, which a loss reads, of all."""
        if not self._readers[layer]:
            return self.layers[layer].output_bytes
        return self._given_back.get(layer, 0)

    @cached_property
    def _given_back(self) -> dict[int, int]:
        """Bytes of the gradients that each layer gets of the tensors that it makes."""
        found: dict[int, int] = {}
        for tensor in self.graph.tensors:
            if tensor.has_gradient:
                found[tensor.producer] = found.get(tensor.producer, 0) + tensor.bytes
        return found

    @cached_property
    def tied(self) -> set[int]:
        ties = self.graph.tied_weights
        return {layer for tie in ties for layer in (tie.owner, *tie.readers)}

    @cached_property
    def read_back(self) -> dict[int, int]:
        """Bytes of the tensors with a gradient that each layer reads."""
        found: defaultdict[int, int] = defaultdict(int)
        for tensor in self.graph.tensors:
            for reader in tensor.readers:
                found[reader] += tensor.bytes * tensor.has_gradient
        return found

    @cached_property
    def _producers(self) -> dict[int, set[int]]:
        found: defaultdict[int, set[int]] = defaultdict(set)
        for producer, consumer in self.graph.edges:
            found[consumer].add(producer)
        return found

    @cached_property
    def _readers(self) -> dict[int, set[int]]:
        found: defaultdict[int, set[int]] = defaultdict(set)
        for producer, consumer in self.graph.edges:
            found[producer].add(consumer)
        return found
