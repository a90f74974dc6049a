"""What layers cost, in network order: of one profile, and of two beside each other."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, get_args

import plotly.graph_objects as go

from app.charts import layers, palette
from app.charts.frame import figure
from app.charts.groups import Detail, LayerGroup, Value, compute, edges, groups, pair_groups
from app.formats import change, count, operations, seconds, size, size_unit, time_unit
from backend.profiles.layer import Layer
from backend.profiles.pair import ProfilePair
from backend.profiles.profile import Profile

Measure = Literal["Time", "Memory", "Operations"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
Bars = tuple[str, str, Value]
Unit = tuple[Callable[[float], tuple[float, str]], Callable[[float], str]]
"""What to multiply figures by, and the name of the unit; a figure as text."""
SPREAD = "one block, from the least to the most"


def layer_costs(
    profile: Profile,
    measure: Measure = "Time",
    detail: Detail = Detail.LAYERS,
    height: int = 340,
    window: tuple[int, int] | None = None,
) -> go.Figure:
    """Bars per layer: seconds stacked, with parameters as bars of their own below; or bytes that a
    microbatch holds and that a cut would send; or floating point operations of a forward. A fold
    is a wide bar as high as one block (the mean), with the spread of its blocks. `window`: the
    first group that is drawn and the one behind the last; all by default."""
    drawing, found = figure(height), groups(profile.graph, detail)[slice(*(window or (None,)))]
    cuts = profile.graph.cut_bytes
    match measure:
        case "Time":
            _draw(drawing, found, cuts, list(_times(profile.layers)), (time_unit, seconds))
            _parameters(drawing, found)
        case "Memory":
            _draw(drawing, found, cuts, list(_sizes(profile.layers)), (size_unit, size))
        case "Operations":
            bars = [("forward", palette.FORWARD, lambda layer: layer.flops or 0.0)]
            _draw(drawing, found, cuts, bars, (_operations, operations))
    drawing.update_layout(barmode="stack", hovermode="closest")
    drawing.update_layout(uniformtext={"minsize": 10, "mode": "hide"})
    drawing.update_xaxes(**layers.axis(found))
    return drawing


def measures(profile: Profile) -> tuple[Measure, ...]:
    """Those that the profile knows."""
    counted = any(layer.flops for layer in profile.layers)
    return MEASURES if counted else MEASURES[:2]


def _times(found: Sequence[Layer]) -> Iterator[Bars]:
    yield "forward", palette.FORWARD, lambda layer: layer.forward
    if any(layer.backward_input for layer in found):
        yield "backward, inputs", palette.BACKWARD_INPUT, lambda layer: layer.backward_input
        rest: Value = lambda layer: layer.backward - layer.backward_input  # noqa: E731
        yield "backward, weights", palette.BACKWARD_WEIGHT, rest
    else:
        yield "backward", palette.BACKWARD, lambda layer: layer.backward
    if any(layer.update for layer in found):
        yield "optimizer", palette.OPTIMIZER, lambda layer: layer.update


def _sizes(found: Sequence[Layer]) -> Iterator[Bars]:
    yield "parameters", palette.NEUTRAL, lambda layer: layer.parameter_bytes
    if any(layer.frozen_bytes for layer in found):
        yield "frozen", palette.SERIES[3], lambda layer: layer.frozen_bytes
    if any(layer.buffer_bytes for layer in found):
        yield "buffers", palette.SERIES[2], lambda layer: layer.buffer_bytes
    yield "kept for backward", palette.MEMORY["activations"], lambda layer: layer.activation_bytes


def _draw(
    drawing: go.Figure,
    found: Sequence[LayerGroup],
    cuts: Sequence[int],
    sets: Sequence[Bars],
    unit: Unit,
) -> None:
    def whole(layer: Layer) -> float:
        return sum(value(layer) for _, _, value in sets)

    factor, name = unit[0](max((group.spread(whole)[1] for group in found), default=0.0))
    texts = [layers.hover(group, cuts[group.stop - 1]) for group in found]
    middles, widths = _bars(found)
    said = [_said(group, unit[1](group.total(whole))) for group in found]
    for number, (title, colour, value) in enumerate(sets):
        drawing.add_bar(
            name=title,
            x=middles,
            y=[group.each(value) * factor for group in found],
            width=widths,
            marker={"color": colour, "line": {"width": 0}},
            text=[lines[number] if number < len(lines) else "" for lines in said],
            textposition="inside",
            textangle=0,
            insidetextanchor="middle",
            insidetextfont={"color": palette.on(colour)},
            hovertext=texts,
            hoverinfo="text",
        )
    _spread(drawing, found, middles, whole, factor)
    drawing.update_yaxes(title={"text": name}, rangemode="tozero")


def _said(group: LayerGroup, total: str) -> tuple[str, ...]:
    """What stands in the parts of a fold's bar, from below."""
    return (group.label, f"{total} in all") if group.count > 1 else ()


def _bars(found: Sequence[LayerGroup]) -> tuple[list[float], list[float]]:
    """Middles and widths of bars, in the units of the axis."""
    at = edges(found)
    middles = [(left + right - 1) / 2 for left, right in pairwise(at)]
    return middles, [group.wide - 0.2 for group in found]


def _spread(
    drawing: go.Figure,
    found: Sequence[LayerGroup],
    middles: Sequence[float],
    whole: Value,
    factor: float,
) -> None:
    """A whisker on each fold whose blocks differ."""
    ranges = [(x, g.each(whole), *g.spread(whole)) for x, g in zip(middles, found, strict=True)]
    shown = [each for each in ranges if each[3] > each[2]]
    if shown:
        drawing.add_scatter(
            name=SPREAD,
            x=[x for x, *_ in shown],
            y=[mean * factor for _, mean, _, _ in shown],
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [(most - mean) * factor for _, mean, _, most in shown],
                "arrayminus": [(mean - least) * factor for _, mean, least, _ in shown],
                "color": palette.NEUTRAL,
                "width": 6,
            },
            mode="markers",
            marker={"size": 4, "color": palette.NEUTRAL},
            hoverinfo="skip",
        )


def _operations(extent: float) -> tuple[float, str]:
    return (1e-9, "GFLOP") if extent >= 1e9 else (1e-6, "MFLOP")


def _parameters(drawing: go.Figure, found: Sequence[LayerGroup]) -> None:
    sizes = [group.each(lambda layer: layer.parameter_bytes) for group in found]
    largest = max(sizes, default=0.0)
    if not largest:
        return
    factor, unit = size_unit(largest)
    middles, widths = _bars(found)
    drawing.add_bar(
        name="parameters",
        x=middles,
        y=[held * factor for held in sizes],
        width=widths,
        yaxis="y2",
        marker={"color": palette.NEUTRAL, "line": {"width": 0}},
        hoverinfo="skip",
    )
    drawing.update_layout(
        yaxis={"domain": [0.32, 1]},
        yaxis2={
            "domain": [0, 0.2],
            "gridcolor": palette.GRID,
            "zeroline": False,
            "rangemode": "tozero",
            "title": {"text": unit},
            "automargin": True,
            "nticks": 3,
            "tickformat": ".3~g",
        },
        xaxis={"anchor": "y2"},
    )


def profile_pair(
    pair: ProfilePair,
    names: tuple[str, str],
    detail: Detail = Detail.LAYERS,
    height: int = 320,
) -> go.Figure:
    """Forward and backward together per layer or block, the one's bars beside the other's."""
    drawing, found = figure(height), list(pair_groups(pair, detail))
    sides = [[None if part is None else part.each(compute) for part in each[1:]] for each in found]
    one, other = [side[0] for side in sides], [_scaled(side[1], pair.scale) for side in sides]
    factor, unit = time_unit(max((v for v in (*one, *other) if v), default=0.0))
    texts = [_hover(each[0], *both) for each, *both in zip(found, one, other, strict=True)]
    middles, widths = _bars([group for group, _, _ in found])
    for side, (name, colour, values) in enumerate(
        zip(names, palette.PAIR, (one, other), strict=True)
    ):
        drawing.add_bar(
            name=name,
            x=middles,
            y=[_scaled(value, factor) for value in values],
            width=[wide / 2 for wide in widths],
            offset=[(side - 1) * wide / 2 for wide in widths],
            marker={"color": colour, "line": {"width": 0}},
            hovertext=texts,
            hoverinfo="text",
        )
    drawing.update_layout(barmode="group", hovermode="closest")
    drawing.update_yaxes(title={"text": unit}, rangemode="tozero")
    drawing.update_xaxes(**layers.axis([group for group, _, _ in found]))
    return drawing


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _hover(group: LayerGroup, one: float | None, other: float | None) -> str:
    apart = f"<br>{change(other, one)}" if one and other is not None else ""
    each = f"<br>{count(group.count, 'equal block')}, the mean" if group.count > 1 else ""
    return f"<b>{group.name}</b>{each}<br>{seconds(one)} and {seconds(other)}{apart}"
