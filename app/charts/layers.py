"""The network's layers in order as an axis: names that stay legible with hundreds of them."""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from app.charts.groups import FEW, LayerGroup, compute, edges
from app.formats import seconds, shorten, size

LABEL = 16
MOST = 30
"""Labels that have room beside each other on a slanted line, on the narrowest screen."""
ENOUGH = 8  # modules with a label
NARROW, LETTER = 560.0, 6.6
"""Pixels: the axis on that screen, a character."""


def ticks(found: Sequence[LayerGroup]) -> tuple[list[float], list[str]]:
    """Where to write what under the axis, in units: each group's label, or, when there are many,
    those of folds and each module's name in the middle of its layers; what has no room is left
    out."""
    starts = edges(found)
    middles = [(left + right) / 2 - 0.5 for left, right in pairwise(starts)]
    own = [(middle, group.label) for middle, group in zip(middles, found, strict=True)]
    if len(found) > FEW:
        folds = [mark for mark, group in zip(own, found, strict=True) if group.count > 1]
        own = _with_room([*folds, *_modules(found, starts), *_evenly(own)], starts[-1] / MOST)
    return [place for place, _ in own], [label for _, label in own]


def _with_room(marks: Sequence[tuple[float, str]], least: float) -> list[tuple[float, str]]:
    """Those that come first, as long as there are `least` units between neighbours."""
    kept: list[tuple[float, str]] = []
    for place, label in marks:
        if all(abs(place - other) >= least for other, _ in kept):
            kept.append((place, label))
    return sorted(kept)


def _modules(found: Sequence[LayerGroup], starts: Sequence[int]) -> list[tuple[float, str]]:
    """The names of modules in the middle of their layers, the widest first; modules are as deep as
    leaves enough of them."""
    names = [group.name for group in found]
    depths = range(1, max(name.count(".") for name in names) + 2)
    each = [[run for run in _runs(names, parts) if run[1] - run[0] > 1] for parts in depths]
    runs = next((runs for runs in each if len(runs) >= ENOUGH), max(each, key=len))
    placed = [(starts[stop] - starts[first], first, stop, name) for first, stop, name in runs]
    return [
        ((starts[first] + starts[stop] - 1) / 2, shorten(name, LABEL))
        for _, first, stop, name in sorted(placed, key=lambda run: -run[0])
    ]


def _runs(names: Sequence[str], parts: int) -> Iterator[tuple[int, int, str]]:
    """Neighbours with the same first parts of their names: the first, the one behind the last."""
    heads = [".".join(name.split(".")[:parts]) for name in names]
    for head, members in groupby(range(len(names)), key=heads.__getitem__):
        found = list(members)
        yield found[0], found[-1] + 1, head


def _evenly(own: Sequence[tuple[float, str]]) -> Sequence[tuple[float, str]]:
    """A layer here and there, for stretches without modules."""
    return own[:: -(-len(own) // (MOST // 2))]


def hover(group: LayerGroup, cut: int) -> str:
    """Everything that is known of a layer or of blocks, as the hover's text; `cut`: the bytes
    alive behind it."""
    forward, backward = group.total(lambda la: la.forward), group.total(lambda la: la.backward)
    weights = group.total(lambda la: la.parameter_bytes)
    stop = group.stop - 1
    where = f"layer {group.first}" if stop == group.first else f"layers {group.first}–{stop}"
    lines = [
        f"<b>{group.name}</b> · {group.kind} · {where}",
        f"forward {seconds(forward)} · backward {seconds(backward)}",
        f"parameters {size(weights)} · output {size(group.layers[-1].output_bytes)}",
        f"cut behind it sends {size(cut)}",
    ]
    if group.count > 1:
        least, most = map(seconds, group.spread(compute))
        lines.insert(1, f"equal blocks, {seconds(group.each(compute))} each ({least} to {most})")
        lines.insert(2, "together:")
    return "<br>".join(lines)


def axis(found: Sequence[LayerGroup]) -> dict[str, Any]:
    """Settings of the x axis of a chart over layers."""
    places, labels = ticks(found)
    units = edges(found)[-1]
    return {
        "tickvals": places,
        "ticktext": labels,
        "tickangle": _angle(places, labels, NARROW / (units + 0.4)),
        "tickfont": {"size": 11},
        "range": [-0.7, units - 0.3],
    }


def _angle(places: Sequence[float], labels: Sequence[str], unit: float) -> int:
    """Degrees at which no label meets its neighbour where a unit has so many pixels: level, else
    slanted, else upright."""
    marks = list(zip(places, labels, strict=True))
    gaps = [
        (unit * (right - left), (len(one) + len(other) + 2) * LETTER / 2)
        for (left, one), (right, other) in pairwise(marks)
    ]
    if all(gap >= wide for gap, wide in gaps):
        return 0
    return -45 if all(gap >= NARROW / (MOST + 1) for gap, _ in gaps) else -90
