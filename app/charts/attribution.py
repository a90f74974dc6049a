"""Where each rank's time went, as shares of the whole."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.deviations import CAUSES, CHECKPOINT, DATA, IDLE, WAITING
from app.charts.frame import figure
from app.formats import percent, seconds

COLOURS = {cause: palette.COLOURS[cause] for cause in CAUSES.values() if cause != WAITING} | {
    DATA: palette.DATA,
    CHECKPOINT: palette.CHECKPOINT,
    WAITING: palette.NEUTRAL,
    IDLE: palette.IDLE,
}


def attribution(rows: Sequence[tuple[str, Mapping[str, float]]]) -> go.Figure:
    """One stacked bar per row (its name, seconds by cause), each scaled to 100 %."""
    drawing = figure(height=max(240, 96 + 30 * len(rows)))
    for cause, colour in COLOURS.items():
        values = [spent.get(cause, 0.0) for _, spent in rows]
        if not any(values):
            continue
        totals = [sum(spent.values()) or 1.0 for _, spent in rows]
        drawing.add_bar(
            orientation="h",
            name=cause,
            y=[name for name, _ in rows],
            x=[100 * value / total for value, total in zip(values, totals, strict=True)],
            width=0.6,
            marker={"color": colour, "line": {"width": 0}},
            hovertext=[
                f"<b>{name}</b> · {cause}<br>{percent(value / total)} · {seconds(value)}"
                for (name, _), value, total in zip(rows, values, totals, strict=True)
            ],
            hoverinfo="text",
        )
    drawing.update_layout(barmode="stack", legend={"traceorder": "normal"})
    drawing.update_xaxes(range=[0, 104], dtick=25, ticksuffix=" %", fixedrange=True)
    drawing.update_yaxes(autorange="reversed", showgrid=False, fixedrange=True)
    return drawing
