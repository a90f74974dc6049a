"""A model as layers: the stretches between the places where it can soundly be cut.

Behind an operation the model can be cut if, across the cut,

    only tensors are alive,
    no module that is called twice, and no buffer that changes, is used on both sides,
    nothing made before it is changed in place after it.

Everything between two such cuts is one layer, so any choice of cuts is sound. A weight that
operations on both sides read is a tensor like any other: the first reader's stage owns it,
and it crosses the cut with every microbatch, its gradient the other way.
"""

from dataclasses import dataclass

from torch import fx, nn

from backend.profiles.profile import Tracing
from workers.definitions.blueprint.blueprint import Blueprint
from workers.definitions.tracing.record import TensorSpec
from workers.definitions.units import Granularity

Nodes = tuple[fx.Node, ...]
CrossingTensor = tuple[int, tuple[int, ...], int, bool, int, int | None]
"""A tensor that crosses cuts: the layer that makes it, its readers, its bytes, whether its
gradient comes back, bytes of each number, and rows along its first dimension (None = not known)."""
TiedWeight = tuple[int, tuple[int, ...], str, int]
"""A weight that crosses cuts: the layer that owns it, its readers, its name, its bytes."""


@dataclass(frozen=True, slots=True)
class ModelLayer:
    """One layer; `output_bytes` are those of the tensors that it hands on, `frozen_bytes` those of
    weights that are not trained."""

    name: str
    kind: str
    output_bytes: int
    parameter_bytes: int
    nodes: Nodes = ()
    buffer_bytes: int = 0
    frozen_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LayeredModel:
    """The layers in running order and the edges (producer, consumer) between them.

    model    owns every parameter and buffer by the model's own names
    graph    None where the model is one layer that runs as it is
    bundles  the nodes alive before each layer: bundles[0] are the model's inputs
    specs    the same bundles as shapes and dtypes
    crossings  each tensor that crosses cuts
    tied_weights   those of them that are weights
    num_scores  size of the last dimension of its output; None where that is no tensor
    tracing, granularity  how the graph was found, and what is one layer of it
    blueprint  makes the first values of the model's tensors; None where these have values
    """

    model: nn.Module
    graph: fx.Graph | None
    layers: tuple[ModelLayer, ...]
    edges: tuple[tuple[int, int], ...]
    bundles: tuple[Nodes, ...]
    specs: tuple[tuple[TensorSpec, ...], ...]
    notes: tuple[str, ...] = ()
    crossings: tuple[CrossingTensor, ...] = ()
    tied_weights: tuple[TiedWeight, ...] = ()
    num_scores: int | None = None
    tracing: Tracing = ""
    granularity: Granularity = "fine"
    blueprint: Blueprint | None = None
