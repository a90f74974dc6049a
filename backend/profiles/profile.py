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
from backend.profiles.message_overhead import MessageOverhead
from backend.profiles.state_precision import StatePrecision

Tracing = Literal["", "symbolic", "captured", "partly", "submodules", "exported"]
"""How a model's operations are found: with stand-ins through every submodule, captured as
operations, with stand-ins through those submodules that these pass, with the submodules whole, or
not at all: the model is a graph already. "": by trying, on the running model."""


ONE_LAYER = "The model is one layer and cannot be cut"
"""How the note of a profile begins that says why."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer at the profile's microbatch size.

    name                 the model's own module path ("features.0"), unique in the graph
    kind                 what it is ("Conv2d", "add")
    forward              seconds of one forward
    backward             seconds of one full backward (input and weight gradient)
    output_bytes         bytes of the output, which travel if the graph is cut behind it
    parameter_bytes      bytes of trainable parameters
    update               seconds of one optimizer update of its parameters
    backward_input       seconds of the half of a backward that gives the input's gradient alone
                         (Qi et al., ICLR 2024); 0 = not measured apart
    backward_weight      seconds of the other half, run by itself: together they may take longer
                         than the whole; 0 = not measured
    adding               seconds to add the gradients of its parameters to those of other
                         microbatches; 0 = not measured
    out_of_place_update  seconds of an update that keeps the old parameters beside the new;
                         0 = not measured
    saved_bytes          activations that autograd keeps for the backward, each storage once and
                         parameters left out; None = not measured
    buffer_bytes         bytes of running statistics and constants
    frozen_bytes         bytes of parameters that are not trained: they have no gradient, no state
                         of an optimizer and one version
    work_bytes           most bytes alive at once while it works, beside its weights, their sums
                         of gradients, what it is given, hands on and keeps: temporary tensors,
                         gradients on their way; None = not measured
    deferred_bytes       gradients that the input's half of a backward leaves for the weights'
                         half; None = not measured
    flops                floating point operations of one forward; None = not counted
    spread               half the range of the seconds of equal layers over their median, where a
                         few were measured for all of them; None = measured by itself
    """

    name: str
    kind: str
    forward: float
    backward: float
    output_bytes: int
    parameter_bytes: int
    update: float = 0.0
    backward_input: float = 0.0
    saved_bytes: int | None = None
    buffer_bytes: int = 0
    flops: float | None = None
    backward_weight: float = 0.0
    adding: float = 0.0
    out_of_place_update: Annotated[float, Field(alias="renewal")] = 0.0
    frozen_bytes: int = 0
    spread: float | None = None
    work_bytes: int | None = None
    deferred_bytes: int | None = None

    @property
    def constant_bytes(self) -> int:
        """What a device holds of it once, whatever the schedule."""
        return self.buffer_bytes + self.frozen_bytes

    @property
    def compute(self) -> float:
        return self.forward + self.backward

    @property
    def compute_and_update(self) -> float:
        """What planners count: PipeDream's cost model has no update, ours has one per
        microbatch."""
        return self.compute + self.update

    @property
    def activation_bytes(self) -> int:
        """What a microbatch holds between forward and backward: as measured, else the output."""
        return self.output_bytes if self.saved_bytes is None else self.saved_bytes

    def scaled(self, compute: float = 1.0, weights: float = 1.0, samples: float = 1.0) -> "Layer":
        """The layer with its seconds of compute times `compute`, those of its weights
        (`update`, `adding`, `out_of_place_update`) times `weights`, and what it makes of a
        microbatch times `samples`: of `work_bytes` what may not be gradients of weights."""
        flops, work = self.flops, self.work_bytes
        steady = min(work or 0, self.parameter_bytes)
        return replace(
            self,
            forward=self.forward * compute,
            backward=self.backward * compute,
            backward_input=self.backward_input * compute,
            backward_weight=self.backward_weight * compute,
            update=self.update * weights,
            adding=self.adding * weights,
            out_of_place_update=self.out_of_place_update * weights,
            flops=None if flops is None else flops * samples,
            work_bytes=None if work is None else steady + round((work - steady) * samples),
            output_bytes=round(self.output_bytes * samples),
            saved_bytes=_times(self.saved_bytes, samples),
            deferred_bytes=_times(self.deferred_bytes, samples),
        )


def _times(size: int | None, samples: float) -> int | None:
    return None if size is None else round(size * samples)


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
    def compute(self) -> float:
        """Seconds of one microbatch through all layers, there and back."""
        return sum(layer.compute for layer in self.layers)

    @property
    def parameter_bytes(self) -> int:
        return sum(layer.parameter_bytes for layer in self.layers)

    @property
    def frozen_bytes(self) -> int:
        return sum(layer.frozen_bytes for layer in self.layers)
