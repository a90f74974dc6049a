"""The same layers in another topological order, as a plan over branches may take them."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from torch import fx

from backend.errors import InvalidInput
from workers.definitions.layers import LayeredModel, Nodes


def in_order(layered: LayeredModel, order: tuple[int, ...]) -> LayeredModel:
    """The model with its layers as `order` names them; () is the model's own order.

    Every layer is sound by itself (see `layers`), so any order in which nothing is read before
    it is made gives the same results. Raises `InvalidInput` on any other order.
    """
    if not order or order == tuple(range(len(order))):
        return layered
    if sorted(order) != list(range(len(layered.layers))):
        raise InvalidInput(
            f"the plan orders {len(order)} layers, but the model has {len(layered.layers)}",
            "Profile the definition again and make a new plan.",
        )
    assert layered.graph is not None, "a model of one layer has one order"
    place = {layer: index for index, layer in enumerate(order)}
    described = zip(layered.bundles, layered.specs, strict=True)
    specs = {node: spec for known in described for node, spec in zip(*known, strict=True)}
    found = bundles(layered.graph, [layer.nodes for layer in layered.layers], specs, place)
    return replace(
        layered,
        layers=tuple(layered.layers[layer] for layer in order),
        edges=tuple(sorted(_forward(place[a], place[b]) for a, b in layered.edges)),
        bundles=found,
        specs=tuple(tuple(specs[node] for node in bundle) for bundle in found),
        crossings=tuple(
            (
                place[made],
                tuple(sorted(place[reader] for reader in readers)),
                size,
                back,
                width,
                rows,
            )
            for made, readers, size, back, width, rows in layered.crossings
        ),
    )


def _forward(producer: int, consumer: int) -> tuple[int, int]:
    if producer >= consumer:
        raise InvalidInput(
            f"the plan's layer {consumer} reads what its layer {producer} makes only later",
            "Make a new plan: this one was made for another model.",
        )
    return producer, consumer


def bundles(
    graph: fx.Graph,
    layers: Sequence[Nodes],
    crossing: Container[fx.Node],
    place: Mapping[int, int] | None = None,
) -> tuple[Nodes, ...]:
    """What goes into each layer, in the order in which it is made: of the nodes in `crossing`
    those made before and read at or after it. `place` says where each layer stands, if not
    where it is listed. A weight that is carried is made by its first reader as listed."""
    home = {node: index for index, nodes in enumerate(layers) for node in nodes}
    place = place or {index: index for index in range(len(layers))}
    lives = {n: _life(n, home, place) for n in graph.nodes if n in crossing}
    inputs = tuple(node for node, (made, _) in lives.items() if made < 0)
    made_first = sorted(lives, key=lambda node: lives[node][0])
    later = (
        tuple(n for n in made_first if lives[n][0] < cut <= lives[n][1])
        for cut in range(1, len(layers))
    )
    return (inputs, *later)


def _life(node: fx.Node, home: Mapping[fx.Node, int], place: Mapping[int, int]) -> tuple[int, int]:
    """The places of the layers that make it (-1: an input) and read it last."""
    readers = [home[user] for user in node.users if user in home]
    producer = home[node] if node in home else min(readers, default=0)
    made = -1 if node.op == "placeholder" else place[producer]
    ends = [len(place)] if any(user not in home for user in node.users) else []
    return made, max([place[reader] for reader in readers] + ends, default=made)
