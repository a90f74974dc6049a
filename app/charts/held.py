"""What the devices of a plan hold over time, one line per pipeline rank, against the limit."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.formats import seconds, size, size_unit, time_unit
from backend.pipeline.memory import Holding, Moment

MOST_POINTS = 1_500  # of one line
DASHES = ("solid", "dash", "dot", "dashdot")


def held(
    lines: Sequence[tuple[str, Sequence[Moment]]], limit: float | None, extent: float, top: float
) -> go.Figure:
    """`lines` by name; `extent` (seconds) and `top` (bytes) make several figures comparable."""
    drawing = figure(height=230)
    by_time, second = time_unit(extent)
    by_size, byte = size_unit(max(top, limit or 0.0))
    for number, (name, moments) in enumerate(lines):
        shown = thinned(moments)
        drawing.add_scatter(
            name=name,
            x=[moment.time * by_time for moment in shown],
            y=[moment.holding.total * by_size for moment in shown],
            mode="lines",
            line={"shape": "hv", "width": 1.4, **_look(number)},
            hovertext=[_hover(name, moment) for moment in shown],
            hoverinfo="text",
        )
    if limit is not None:
        drawing.add_hline(
            y=limit * by_size, line={"color": palette.LIMIT, "dash": "dot", "width": 1.5}
        )
    drawing.update_xaxes(ticksuffix=f" {second}", range=[0, 1.01 * extent * by_time])
    drawing.update_yaxes(
        ticksuffix=f" {byte}", range=[0, 1.06 * max(top, limit or 0.0) * by_size or 1], nticks=5
    )
    return drawing


def _look(number: int) -> dict[str, str]:
    """A colour, and a dash for those beyond as many as there are."""
    turn, place = divmod(number, len(palette.SERIES))
    return {"color": palette.SERIES[place], "dash": DASHES[turn % len(DASHES)]}


def thinned(moments: Sequence[Moment]) -> Sequence[Moment]:
    """At most about `MOST_POINTS`: of each stretch of neighbours the one that holds the most,
    so that no peak is lost."""
    wide = -(-len(moments) // MOST_POINTS)
    if wide <= 1:
        return moments
    return [
        max(moments[at : at + wide], key=lambda moment: moment.holding.total)
        for at in range(0, len(moments), wide)
    ]


def _hover(name: str, moment: Moment) -> str:
    holding: Holding = moment.holding
    lines = [f"{word} {size(part)}" for word, part in holding.named.items()]
    head = f"<b>{name}</b> · {size(holding.total)} from {seconds(moment.time)} on"
    return "<br>".join([head, *lines])
