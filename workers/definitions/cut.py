"""A run of layers as a module of its own: bundle in, bundle out."""

from torch import fx, nn

from backend.errors import InvalidInput
from workers.definitions.layers import LayeredModel


def cut(layered: LayeredModel, first: int, stop: int) -> nn.Module:
    """The module of layers `first` up to, not including, `stop`.

    It is called with the tensors of bundle `first` and returns the tuple of bundle `stop`,
    or the model's own output where `stop` is the last. Parameters are shared with the model
    and keep their names. Raises `InvalidInput` for layers that are not there.
    """
    num_layers = len(layered.layers)
    if not 0 <= first < stop <= num_layers:
        raise InvalidInput(f"layers {first}..{stop - 1} are not in 0..{num_layers - 1}")
    if layered.graph is None:
        return layered.model
    copier = _Copier()
    for node in layered.bundles[first]:
        copier.copies[node] = copier.graph.placeholder(node.name)
    for layer in layered.layers[first:stop]:
        for node in layer.nodes:
            copier(node)
    if stop < num_layers:
        copier.graph.output(tuple(copier(node) for node in layered.bundles[stop]))
    else:
        copier(next(node for node in layered.graph.nodes if node.op == "output"))
    return fx.GraphModule(layered.model, copier.graph)


class _Copier:
    """Copies nodes into a new graph, with the attributes (parameters, buffers) that they read."""

    def __init__(self) -> None:
        self.graph = fx.Graph()
        self.copies: dict[fx.Node, fx.Node] = {}

    def __call__(self, node: fx.Node) -> fx.Node:
        if node not in self.copies:
            self.copies[node] = self.graph.node_copy(node, self)
        return self.copies[node]
