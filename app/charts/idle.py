"""Why ranks do not compute, as shares of all rank time: one bar per plan and schedule."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.formats import percent, seconds, shorten
from backend.pipeline.bubbles import Causes, Idle

COLOURS: dict[Idle, str] = {
    Idle.WARM_UP: "#56B4E9",
    Idle.DRAIN: "#0072B2",
    Idle.IMBALANCE: "#E69F00",
    Idle.COMMUNICATION: palette.COMMUNICATION,
    Idle.SYNCHRONISATION: palette.SYNCHRONISATION,
    Idle.SHARING: "#CC79A7",
}
NAME = 34


def idle(rows: Sequence[tuple[str, Causes, float]]) -> go.Figure:
    """`rows`: name, idle seconds by cause, and the seconds of all ranks together."""
    drawing = figure(height=100 + 34 * len(rows))
    for cause, colour in COLOURS.items():
        values = [causes.get(cause, 0.0) for _, causes, _ in rows]
        if not any(values):
            continue
        wholes = [whole or 1.0 for _, _, whole in rows]
        drawing.add_bar(
            orientation="h",
            name=cause.value,
            y=[f"{number + 1}" for number in range(len(rows))],
            x=[100 * value / whole for value, whole in zip(values, wholes, strict=True)],
            width=0.6,
            marker={"color": colour, "line": {"width": 0}},
            hovertext=[
                f"<b>{name}</b> · {cause.value}<br>{percent(value / whole)} of all rank time, "
                f"{seconds(value)}"
                for (name, _, _), value, whole in zip(rows, values, wholes, strict=True)
            ],
            hoverinfo="text",
        )
    drawing.update_layout(barmode="stack")
    drawing.update_xaxes(ticksuffix=" %", rangemode="tozero", fixedrange=True)
    drawing.update_yaxes(
        autorange="reversed",
        showgrid=False,
        fixedrange=True,
        type="category",
        tickvals=[f"{number + 1}" for number in range(len(rows))],
        ticktext=[shorten(name, NAME) for name, _, _ in rows],
    )
    return drawing
