"""What a model costs, layer by layer: measured once, read by every planner."""

from dataclasses import dataclass, replace
from functools import cached_property

from backend.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer at the profile's microbatch size.

    name             the model's own module path ("features.0"), unique in the graph
    kind             what it is ("Conv2d", "add")
    forward          seconds of one forward
    backward         seconds of one full backward (input and weight gradient)
    output_bytes     bytes of the output, which travel if the graph is cut behind it
    parameter_bytes  bytes of trainable parameters
    update           seconds of one optimizer update of its parameters
    """

    name: str
    kind: str
    forward: float
    backward: float
    output_bytes: int
    parameter_bytes: int
    update: float = 0.0

    @property
    def compute(self) -> float:
        return self.forward + self.backward


@dataclass(frozen=True)
class ModelGraph:
    """Layers in a topological order, and edges (producer, consumer) as layer indices.

    A cut after layer i puts layers 0..i on one side: any prefix of a topological order
    is a downset, so every such cut is sound. Raises `InvalidInput` on an edge backwards.
    """

    layers: tuple[Layer, ...]
    edges: tuple[tuple[int, int], ...]

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
    def cut_bytes(self) -> tuple[int, ...]:
        """Bytes alive across the cut behind each layer: the outputs made at or before it
        and read after it, each once. The last entry is 0."""
        last_reader = list(range(len(self.layers)))
        for producer, consumer in self.edges:
            last_reader[producer] = max(last_reader[producer], consumer)
        delta = [0] * (len(self.layers) + 1)
        for index, layer in enumerate(self.layers):
            delta[index] += layer.output_bytes
            delta[last_reader[index]] -= layer.output_bytes
        alive, cuts = 0, []
        for change in delta[: len(self.layers)]:
            alive += change
            cuts.append(alive)
        return tuple(cuts)


@dataclass(frozen=True)
class Profile:
    """A graph with its costs, and what they were measured on.

    microbatch     samples per microbatch
    device         name of the device ("cpu", "NVIDIA H200")
    whole_forward, whole_backward   seconds of the uncut model, beside the sum of layers
    notes          what a reader should know (a fallback to a coarser cut, ...)
    """

    name: str
    graph: ModelGraph
    microbatch: int
    device: str = "cpu"
    whole_forward: float = 0.0
    whole_backward: float = 0.0
    repetitions: int = 0
    notes: tuple[str, ...] = ()

    @property
    def layers(self) -> tuple[Layer, ...]:
        return self.graph.layers

    def in_order(self, order: tuple[int, ...]) -> "Profile":
        """The same model with its layers in another topological order, named by today's
        indices; () is the profile itself. Raises `InvalidInput` where an edge goes back."""
        if not order:
            return self
        place = {layer: index for index, layer in enumerate(order)}
        layers = tuple(self.layers[layer] for layer in order)
        edges = tuple(sorted((place[a], place[b]) for a, b in self.graph.edges))
        return replace(self, graph=ModelGraph(layers, edges))

    @property
    def compute(self) -> float:
        """Seconds of one microbatch through all layers, there and back."""
        return sum(layer.compute for layer in self.layers)

    @property
    def parameter_bytes(self) -> int:
        return sum(layer.parameter_bytes for layer in self.layers)
