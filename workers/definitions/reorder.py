"""The same layers in another topological order, as a plan over branches may take them."""

from collections.abc import Iterator
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
    place = {layer: index for index, layer in enumerate(order)}
    lives = dict(_lives(layered, place))
    specs = {
        n: s
        for known in zip(layered.bundles, layered.specs, strict=True)
        for n, s in zip(*known, strict=True)
    }
    alive = (_alive(lives, cut) for cut in range(1, len(order)))
    bundles = (layered.bundles[0], *alive)
    return replace(
        layered,
        layers=tuple(layered.layers[layer] for layer in order),
        edges=tuple(sorted(_forward(place[a], place[b]) for a, b in layered.edges)),
        bundles=bundles,
        specs=tuple(tuple(specs[node] for node in bundle) for bundle in bundles),
        crossings=tuple(
            (place[maker], tuple(sorted(place[reader] for reader in readers)), size)
            for maker, readers, size in layered.crossings
        ),
    )


def _forward(producer: int, consumer: int) -> tuple[int, int]:
    if producer >= consumer:
        raise InvalidInput(
            f"the plan's layer {consumer} reads what its layer {producer} makes only later",
            "Make a new plan: this one was made for another model.",
        )
    return producer, consumer


def _lives(
    layered: LayeredModel, place: dict[int, int]
) -> Iterator[tuple[fx.Node, tuple[int, int]]]:
    """Whatever crosses a cut, with the layers that make it (-1: an input) and read it last; in
    the graph's order. A weight that is carried is made by its first reader in the model."""
    assert layered.graph is not None, "a model of one layer has one order"
    home = {node: i for i, layer in enumerate(layered.layers) for node in layer.nodes}
    crossing = {node for bundle in layered.bundles for node in bundle}
    end = len(layered.layers)
    for node in layered.graph.nodes:
        if node in crossing:
            readers = [home[user] for user in node.users if user in home]
            maker = home[node] if node in home else min(readers, default=0)
            made = -1 if node.op == "placeholder" else place[maker]
            last = [place[r] for r in readers] + [end for u in node.users if u not in home]
            yield node, (made, max(last, default=made))


def _alive(lives: dict[fx.Node, tuple[int, int]], cut: int) -> Nodes:
    """What goes into layer `cut`, in the order in which it is made."""
    found = [node for node, (made, last) in lives.items() if made < cut <= last]
    return tuple(sorted(found, key=lambda node: lives[node][0]))
