"""What a model costs, layer by layer: measured once, read by every planner."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Annotated, Literal

from pydantic import Field

from backend.errors import InvalidInput
from backend.profiles.coding_speed import CodingSpeed
from backend.profiles.crossing import Crossing, TiedWeight
from backend.profiles.layer import Layer, LayerSums
from backend.profiles.message_overhead import MessageOverhead
from backend.profiles.state_precision import StatePrecision

Tracing = Literal["", "symbolic", "captured", "partly", "submodules", "exported"]
"""How a model's operations are found: with stand-ins through every submodule, captured as
operations, with stand-ins through those submodules that these pass, with the submodules whole, or
not at all: the model is a graph already. "": by trying, on the running model."""


KEPT_SUMS, KEPT_ORDERS = 2_048, 32
"""Sums of layers, and whole profiles in other orders, that a profile remembers: searches ask for
the same ones again."""
ONE_LAYER = "The model is one layer and cannot be cut"
"""How the note of a profile begins that says why."""


@dataclass(frozen=True)
class ModelGraph:
    """Layers in a topological order, and edges (producer, consumer) as layer indices.

    A cut after layer i puts layers 0..i on one side: any prefix of a topological order
    is a downset, so every such cut is sound. Raises `InvalidInput` on an edge backwards.
    """

    layers: tuple[Layer, ...]
    edges: tuple[tuple[int, int], ...]
    crossings: tuple[Crossing, ...] = ()
    tied_weights: Annotated[tuple[TiedWeight, ...], Field(alias="ties")] = ()

    def __post_init__(self) -> None:
        for producer, consumer in self.edges:
            if not 0 <= producer < consumer < len(self.layers):
                raise InvalidInput(
                    f"edge {producer} -> {consumer} does not go forward in the graph"
                )

    @staticmethod
    def chain(layers: tuple[Layer, ...]) -> "ModelGraph":
        return ModelGraph(layers, tuple((i, i + 1) for i in range(len(layers) - 1)))

    @cached_property
    def tensors(self) -> tuple[Crossing, ...]:
        """What may cross a cut: `crossings` where they are known, else the output of each layer
        that is read, which counts until the last of its readers has it."""
        if self.crossings:
            return self.crossings
        readers: list[list[int]] = [[] for _ in self.layers]
        for producer, consumer in self.edges:
            readers[producer].append(consumer)
        return tuple(
            Crossing(number, tuple(readers[number]), layer.output_bytes)
            for number, layer in enumerate(self.layers)
            if readers[number]
        )

    @cached_property
    def cut_bytes(self) -> tuple[int, ...]:
        """Bytes alive across the cut behind each layer: the tensors made at or before it
        and read after it, each once. The last entry is 0."""
        return self._alive((tensor, tensor.bytes) for tensor in self.tensors)

    @cached_property
    def gradient_bytes(self) -> tuple[int, ...]:
        """Bytes that come back over each cut: the gradients of those tensors that have one."""
        return self._alive((tensor, tensor.bytes) for tensor in self.tensors if tensor.has_gradient)

    @cached_property
    def exchanged_bytes(self) -> tuple[int, ...]:
        """Bytes that cross each cut there and back."""
        both = zip(self.cut_bytes, self.gradient_bytes, strict=True)
        return tuple(there + back for there, back in both)

    @cached_property
    def one_way(self) -> tuple[bool, ...]:
        """Whether no gradient comes back over the cut behind each layer; the last has none."""
        coming = self._alive((tensor, 1) for tensor in self.tensors if tensor.has_gradient)
        return (*(count == 0 for count in coming[:-1]), False)

    @property
    def is_two_way(self) -> bool:
        """Whether every tensor that crosses cuts has a gradient that comes back."""
        return all(tensor.has_gradient for tensor in self.tensors)

    @cached_property
    def read_bytes(self) -> tuple[int, ...]:
        """Bytes of the tensors that each layer reads; what the loader brings is not known."""
        found = [0] * len(self.layers)
        for tensor in self.tensors:
            for reader in tensor.readers:
                found[reader] += tensor.bytes
        return tuple(found)

    def _alive(self, tensors: Iterable[tuple[Crossing, int]]) -> tuple[int, ...]:
        """The sum of the numbers of those tensors that cross the cut behind each layer."""
        delta = [0] * (len(self.layers) + 1)
        for tensor, number in tensors:
            delta[tensor.producer] += number
            delta[max(tensor.readers)] -= number
        return tuple(accumulate(delta[: len(self.layers)]))


@dataclass(frozen=True)
class Profile:
    """A graph with its costs, and what they were measured on.

    microbatch     samples per microbatch
    device         name of the device ("cpu", "NVIDIA H200")
    whole_forward, whole_backward   seconds of the uncut model, beside the sum of layers
    notes          what a reader should know (a fallback to a coarser cut, ...)
    whole_update   seconds of the uncut model's optimizer update
    peak_bytes     measured peak of one training step in a process; None = not measured
    process_bytes  what a rank's process holds beside what is alive of its model: Python, torch, a
                   definition's imports, a GPU's context, what allocators leave unused; 0 = not
                   measured
    parameters, granularity, precision   what the definition was given and how it was run
    versions       of what the times depend on
    tracing        how the layers can be found again without running the model or making its
                   weights; "" = they cannot, or nobody tried
    is_partial     the job was stopped: medians over fewer repetitions than were asked for
    by_parts       the layers were made and timed one by one, equal ones a few times
    message_overhead   what a message costs the ranks' processors; None = not measured, or the
                   ranks compute on GPUs
    state_precision    in which the bytes of parameters are counted (`kept_in`); as measured float32
    cores_taken    share of the time in which the profiler could compute that others had its core;
                   None = not measured, or it computes on a GPU
    coding_speeds  of the codecs that were measured; () = none were
    """

    name: str
    graph: ModelGraph
    microbatch: int
    device: str = "cpu"
    whole_forward: float = 0.0
    whole_backward: float = 0.0
    repetitions: int = 0
    notes: tuple[str, ...] = ()
    whole_update: float = 0.0
    peak_bytes: int | None = None
    process_bytes: int = 0
    parameters: dict[str, bool | int | float | str] = field(default_factory=dict)
    granularity: Literal["", "fine", "blocks"] = ""
    precision: Literal["float32", "bfloat16"] = "float32"
    versions: dict[str, str] = field(default_factory=dict)
    tracing: Tracing = ""
    is_partial: bool = False
    by_parts: bool = False
    message_overhead: Annotated[MessageOverhead | None, Field(alias="handling")] = None
    state_precision: StatePrecision = "float32"
    cores_taken: Annotated[float, Field(ge=0, le=1)] | None = None
    coding_speeds: tuple[CodingSpeed, ...] = ()

    def coding_speed(self, codec: str, flow: str) -> CodingSpeed | None:
        """That of the codec of this name for activations or for gradients (`Flow`); None where it
        was not measured."""
        speeds = (each for each in self.coding_speeds if each.codec == codec)
        return next((each for each in speeds if each.flow in ("", flow)), None)

    @property
    def layers(self) -> tuple[Layer, ...]:
        return self.graph.layers

    def with_layers(self, layers: Iterable[Layer]) -> "Profile":
        """The same graph with these layers in place of its own."""
        return replace(self, graph=replace(self.graph, layers=tuple(layers)))

    def in_order(self, order: tuple[int, ...]) -> "Profile":
        """The same model with its layers in another topological order, named by today's
        indices; () is the profile itself. Raises `InvalidInput` where an edge goes back."""
        if not order:
            return self
        if order not in self._orders:
            if len(self._orders) >= KEPT_ORDERS:
                self._orders.clear()
            self._orders[order] = self._in_order(order)
        return self._orders[order]

    def between(self, first: int, stop: int) -> LayerSums:
        """What the layers from `first` to before `stop` cost together."""
        if (first, stop) not in self._sums:
            if len(self._sums) >= KEPT_SUMS:
                self._sums.clear()
            self._sums[first, stop] = LayerSums.of(self.layers[first:stop])
        return self._sums[first, stop]

    @cached_property
    def _orders(self) -> dict[tuple[int, ...], "Profile"]:
        return {}

    @cached_property
    def _sums(self) -> dict[tuple[int, int], LayerSums]:
        return {}

    def _in_order(self, order: tuple[int, ...]) -> "Profile":
        place = {layer: index for index, layer in enumerate(order)}
        layers = tuple(self.layers[layer] for layer in order)
        edges = tuple(sorted((place[a], place[b]) for a, b in self.graph.edges))
        crossings = tuple(
            replace(
                each, producer=place[each.producer], readers=tuple(place[r] for r in each.readers)
            )
            for each in self.graph.crossings
        )
        tied_weights = tuple(
            replace(tie, owner=place[tie.owner], readers=tuple(place[r] for r in tie.readers))
            for tie in self.graph.tied_weights
        )
        return replace(self, graph=ModelGraph(layers, edges, crossings, tied_weights))

    @cached_property
    def compute_in_front(self) -> tuple[float, ...]:
        """Seconds of one microbatch, there and back, through the layers in front of each cut, from
        none to all."""
        return tuple(accumulate((layer.compute for layer in self.layers), initial=0.0))

    @cached_property
    def seconds_in_front(self) -> tuple[float, ...]:
        """The same with an update."""
        return tuple(accumulate((x.compute_and_update for x in self.layers), initial=0.0))

    @cached_property
    def parameters_in_front(self) -> tuple[int, ...]:
        """Bytes of parameters likewise."""
        return tuple(accumulate((layer.parameter_bytes for layer in self.layers), initial=0))

    @cached_property
    def compute(self) -> float:
        """Seconds of one microbatch through all layers, there and back."""
        return sum(layer.compute for layer in self.layers)

    @property
    def parameter_bytes(self) -> int:
        return sum(layer.parameter_bytes for layer in self.layers)

    @property
    def frozen_bytes(self) -> int:
        return sum(layer.frozen_bytes for layer in self.layers)
