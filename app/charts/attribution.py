"""Where each rank's time went, as shares of the whole."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.formats import percent, seconds

CAUSES = {
    "forward": palette.FORWARD,
    "backward": palette.BACKWARD,
    "backward, inputs": palette.BACKWARD_INPUT,
    "backward, weights": palette.BACKWARD_WEIGHT,
    "optimizer": palette.OPTIMIZER,
    "all-reduce": palette.SYNCHRONISATION,
    "transfer": palette.COMMUNICATION,
    "waiting": palette.NEUTRAL,
}


def attribution(rows: Sequence[tuple[str, Mapping[str, float]]]) -> go.Figure:
    """One stacked bar per row (its name, seconds by cause), each scaled to 100 %.

    Causes without a colour of their own are drawn in grey.
    """
    drawing = figure(height=96 + 34 * max(len(rows), 1))
    causes = [*CAUSES, *sorted({c for _, spent in rows for c in spent} - CAUSES.keys())]
    for cause in causes:
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
            marker={"color": CAUSES.get(cause, palette.NEUTRAL), "line": {"width": 0}},
            hovertext=[
                f"<b>{name}</b> · {cause}<br>{percent(value / total)} · {seconds(value)}"
                for (name, _), value, total in zip(rows, values, totals, strict=True)
            ],
            hoverinfo="text",
        )
    drawing.update_layout(barmode="stack", legend={"traceorder": "normal"})
    drawing.update_xaxes(range=[0, 100], ticksuffix=" %", fixedrange=True)
    drawing.update_yaxes(autorange="reversed", showgrid=False, fixedrange=True)
    return drawing
