"""The network's layers in order as an axis: names that stay legible with hundreds of them."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from app.formats import seconds, shorten, size
from backend.profiles.profile import Layer

EVERY_NAME = 40  # up to this many layers each gets its own label
LABEL = 16


def ticks(names: Sequence[str]) -> tuple[list[float], list[str]]:
    """Where to write what under the axis: each layer's name, or, when there are many,
    each module's name in the middle of its layers."""
    if len(names) <= EVERY_NAME:
        return [float(i) for i in range(len(names))], [shorten(name, LABEL) for name in names]
    groups = _modules(names)
    wide = max(1, len(names) // EVERY_NAME)
    shown = [(first, stop, name) for first, stop, name in groups if stop - first >= wide]
    return (
        [(first + stop - 1) / 2 for first, stop, _ in shown],
        [shorten(name, LABEL) for _, _, name in shown],
    )


def _modules(names: Sequence[str]) -> list[tuple[int, int, str]]:
    """Runs of layers (first, stop, name) of one module, as deep as leaves enough runs."""
    depth = max((name.count(".") for name in names), default=0)
    runs: list[tuple[int, int, str]] = []
    for parts in range(1, depth + 2):
        runs, first = [], 0
        for name, members in groupby(names, key=lambda n: ".".join(n.split(".")[:parts])):
            stop = first + sum(1 for _ in members)
            runs.append((first, stop, name))
            first = stop
        if len(runs) >= 8:
            break
    return runs


def hover(index: int, layer: Layer, cut: int) -> str:
    """Everything that is known of a layer, as the hover's text."""
    return (
        f"<b>{layer.name}</b> · {layer.kind} · layer {index}"
        f"<br>forward {seconds(layer.forward)} · backward {seconds(layer.backward)}"
        f"<br>parameters {size(layer.parameter_bytes)} · output {size(layer.output_bytes)}"
        f"<br>cut behind it sends {size(cut)}"
    )


def axis(names: Sequence[str]) -> dict[str, Any]:
    """Settings of the x axis of a chart over layers."""
    places, labels = ticks(names)
    longest = max(map(len, labels), default=0)
    return {
        "tickvals": places,
        "ticktext": labels,
        "tickangle": -45 if longest * len(labels) > 90 else 0,
        "tickfont": {"size": 11},
        "range": [-0.7, len(names) - 0.3],
    }
