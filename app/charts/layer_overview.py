"""The whole network as one small strip, with the part of it that another chart shows marked."""

from collections.abc import Sequence
from itertools import pairwise

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.charts.groups import LayerGroup, compute, edges

HEIGHT = 56


def layer_overview(found: Sequence[LayerGroup], window: tuple[int, int]) -> go.Figure:
    """Seconds of each group, without an axis; `window`: the first group that is shown and the one
    behind the last."""
    drawing, at = figure(HEIGHT, legend=False), edges(found)
    drawing.add_bar(
        x=[(left + right - 1) / 2 for left, right in pairwise(at)],
        y=[group.each(compute) for group in found],
        width=[group.wide for group in found],
        marker={"color": palette.NEUTRAL, "line": {"width": 0}},
        hoverinfo="skip",
    )
    first, stop = window
    drawing.add_vrect(
        x0=at[first] - 0.5,
        x1=at[stop] - 0.5,
        fillcolor=palette.IDLE,
        line={"color": palette.NEUTRAL, "width": 1.5},
        layer="above",
    )
    drawing.update_layout(margin={"t": 2, "b": 2}, bargap=0)
    drawing.update_xaxes(visible=False, fixedrange=True, range=[-0.7, at[-1] - 0.3])
    drawing.update_yaxes(visible=False, fixedrange=True)
    return drawing
