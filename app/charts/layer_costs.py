"""What layers cost, in network order: of one profile, and of two beside each other."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, get_args

import plotly.graph_objects as go

from app.charts import layers, palette
from app.charts.frame import figure
from app.formats import change, seconds, size_unit, time_unit
from backend.profiles.pair import LayerPair, ProfilePair
from backend.profiles.profile import Layer, Profile

Measure = Literal["Time", "Memory", "Operations"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
Bars = tuple[str, str, list[float]]
Unit = Callable[[float], tuple[float, str]]


def layer_costs(profile: Profile, measure: Measure = "Time", height: int = 340) -> go.Figure:
    """Bars per layer: seconds stacked, with parameters as a line (right axis); or bytes that a
    microbatch holds and that a cut would send; or floating point operations of a forward."""
    drawing = figure(height)
    match measure:
        case "Time":
            _draw(drawing, profile, list(_times(profile.layers)), time_unit)
            _parameters(drawing, profile)
        case "Memory":
            _draw(drawing, profile, list(_sizes(profile)), size_unit)
        case "Operations":
            flops = [layer.flops or 0.0 for layer in profile.layers]
            _draw(drawing, profile, [("forward", palette.FORWARD, flops)], _operations)
    drawing.update_layout(barmode="stack", hovermode="closest")
    drawing.update_xaxes(**layers.axis([layer.name for layer in profile.layers]))
    return drawing


def measures(profile: Profile) -> tuple[Measure, ...]:
    """Those that the profile knows."""
    counted = any(layer.flops for layer in profile.layers)
    return MEASURES if counted else MEASURES[:2]


def _times(found: Sequence[Layer]) -> Iterator[Bars]:
    yield "forward", palette.FORWARD, [layer.forward for layer in found]
    if any(layer.backward_input for layer in found):
        inputs = [layer.backward_input for layer in found]
        rest = [layer.backward - layer.backward_input for layer in found]
        yield "backward, inputs", palette.BACKWARD_INPUT, inputs
        yield "backward, weights", palette.BACKWARD_WEIGHT, rest
    else:
        yield "backward", palette.BACKWARD, [layer.backward for layer in found]
    if any(layer.update for layer in found):
        yield "optimizer", palette.OPTIMIZER, [layer.update for layer in found]


def _sizes(profile: Profile) -> Iterator[Bars]:
    found = profile.layers
    yield "parameters", palette.NEUTRAL, [float(layer.parameter_bytes) for layer in found]
    if any(layer.frozen_bytes for layer in found):
        yield "frozen", palette.BACKWARD_INPUT, [float(layer.frozen_bytes) for layer in found]
    if any(layer.buffer_bytes for layer in found):
        yield "buffers", palette.OPTIMIZER, [float(layer.buffer_bytes) for layer in found]
    held = [float(layer.activation_bytes) for layer in found]
    yield "kept for backward", palette.BACKWARD, held


def _draw(drawing: go.Figure, profile: Profile, sets: Sequence[Bars], unit_for: Unit) -> None:
    stacked = [sum(values) for values in zip(*(values for _, _, values in sets), strict=True)]
    factor, unit = unit_for(max(stacked, default=0.0))
    texts = [
        layers.hover(index, layer, cut)
        for index, (layer, cut) in enumerate(
            zip(profile.layers, profile.graph.cut_bytes, strict=True)
        )
    ]
    for name, colour, values in sets:
        drawing.add_bar(
            name=name,
            x=list(range(len(values))),
            y=[value * factor for value in values],
            marker={"color": colour, "line": {"width": 0}},
            hovertext=texts,
            hoverinfo="text",
        )
    drawing.update_yaxes(title={"text": unit}, rangemode="tozero")


def _operations(extent: float) -> tuple[float, str]:
    return (1e-9, "GFLOP") if extent >= 1e9 else (1e-6, "MFLOP")


def _parameters(drawing: go.Figure, profile: Profile) -> None:
    largest = max((layer.parameter_bytes for layer in profile.layers), default=0)
    if not largest:
        return
    factor, unit = size_unit(largest)
    drawing.add_scatter(
        name=f"parameters ({unit}, right)",
        x=list(range(len(profile.layers))),
        y=[layer.parameter_bytes * factor for layer in profile.layers],
        yaxis="y2",
        mode="lines+markers",
        line={"color": palette.NEUTRAL, "width": 1, "dash": "dot"},
        marker={"size": 4},
        hoverinfo="skip",
    )
    drawing.update_layout(
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            "zeroline": False,
            "rangemode": "tozero",
            "title": {"text": unit},
            "automargin": True,
            "tickmode": "auto",
            "nticks": 5,
            "tickformat": ".3~g",
        }
    )


def profile_pair(pair: ProfilePair, names: tuple[str, str], height: int = 320) -> go.Figure:
    """Forward and backward together per layer, the one's bars beside the other's."""
    drawing = figure(height)
    found = list(pair.layers())
    one = [each.one.compute if each.one else None for each in found]
    other = [each.other.compute * pair.scale if each.other else None for each in found]
    factor, unit = time_unit(max((v for v in (*one, *other) if v), default=0.0))
    texts = [_hover(*each) for each in zip(found, one, other, strict=True)]
    for name, colour, values in zip(
        names, (palette.FORWARD, palette.BACKWARD), (one, other), strict=True
    ):
        drawing.add_bar(
            name=name,
            x=list(range(len(found))),
            y=[None if value is None else value * factor for value in values],
            marker={"color": colour, "line": {"width": 0}},
            hovertext=texts,
            hoverinfo="text",
        )
    drawing.update_layout(barmode="group", hovermode="closest")
    drawing.update_yaxes(title={"text": unit}, rangemode="tozero")
    drawing.update_xaxes(**layers.axis([each.name for each in found]))
    return drawing


def _hover(pair: LayerPair, one: float | None, other: float | None) -> str:
    apart = f"<br>{change(other, one)}" if one and other is not None else ""
    return f"<b>{pair.name}</b><br>{seconds(one)} and {seconds(other)}{apart}"
