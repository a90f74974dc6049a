"""Two profiles' layers as bars beside each other."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app.charts import layers, palette
from app.charts.frame import figure
from app.formats import change, seconds, time_unit
from backend.profiles.pair import LayerPair, ProfilePair

COLOURS = (palette.FORWARD, palette.BACKWARD)


def profile_pair(pair: ProfilePair, names: tuple[str, str], height: int = 320) -> go.Figure:
    """Forward and backward together per layer, the one's bars beside the other's."""
    drawing = figure(height)
    found = list(pair.layers())
    one = [each.one.compute if each.one else None for each in found]
    other = [each.other.compute * pair.scale if each.other else None for each in found]
    factor, unit = time_unit(max((v for v in (*one, *other) if v), default=0.0))
    texts = [_hover(*each) for each in zip(found, one, other, strict=True)]
    for name, colour, values in zip(names, COLOURS, (one, other), strict=True):
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
    drawing.update_xaxes(**layers.axis(_names(found)))
    return drawing


def _names(found: Sequence[LayerPair]) -> list[str]:
    return [each.name for each in found]


def _hover(pair: LayerPair, one: float | None, other: float | None) -> str:
    apart = f"<br>{change(other, one)}" if one and other is not None else ""
    return f"<b>{pair.name}</b><br>{seconds(one)} and {seconds(other)}{apart}"
