"""Seconds by cause as bars, each a share of a whole."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import plotly.graph_objects as go

from app.charts import palette
from app.charts.deviations import SPENT_ON
from app.charts.frame import figure
from app.formats import percent, seconds, shorten
from backend.pipeline.bubbles import Causes, Idle

IDLE: dict[Idle, str] = {
    Idle.WARM_UP: palette.STAGES[0],
    Idle.DRAIN: palette.NEUTRAL,
    Idle.IMBALANCE: palette.NEUTRAL,
    Idle.COMMUNICATION: palette.COMMUNICATION,
    Idle.SYNCHRONISATION: palette.SYNCHRONISATION,
    Idle.SHARING: palette.NEUTRAL,
}
"""Greys, as idle time is in a timeline, but for what waits for an action of another colour."""
HATCHED: dict[str, str] = {Idle.IMBALANCE: "/", Idle.SHARING: "."}
NAME = 40  # characters
LINE, BESIDE = 20, 10  # pixels: a line of the legend, and what is above and below all of them
AnyCause = TypeVar("AnyCause", bound=str)


def attribution(rows: Sequence[tuple[str, Mapping[str, float]]]) -> go.Figure:
    """Where each rank's time went: a bar per row (its name, seconds by cause), scaled to 100 %."""
    whole = [(name, spent, sum(spent.values())) for name, spent in rows]
    drawing = _shares(whole, {cause: palette.COLOURS[cause] for cause in SPENT_ON}, 30)
    drawing.update_layout(showlegend=False, margin={"t": 8}, height=64 + 30 * len(rows))
    drawing.update_xaxes(range=[0, 104], dtick=25)
    return drawing


def spent_on(rows: Sequence[tuple[str, Mapping[str, float]]]) -> dict[str, str]:
    """The colours of what any of them spent time on: the legend of `attribution`."""
    found = {cause for _, spent in rows for cause in spent if spent[cause]}
    return {cause: palette.COLOURS[cause] for cause in SPENT_ON if cause in found}


def idle(rows: Sequence[tuple[str, Causes, float]]) -> go.Figure:
    """Why ranks do not compute: a bar per plan and schedule. `rows`: name, idle seconds by cause,
    and the seconds of all ranks together."""
    drawing = _shares(rows, IDLE, 34)
    drawing.update_xaxes(rangemode="tozero")
    return drawing


def _shares(
    rows: Sequence[tuple[str, Mapping[AnyCause, float], float]],
    colours: Mapping[AnyCause, str],
    height: int,
) -> go.Figure:
    """One stacked bar of `height` pixels per row: its name, seconds by cause, the whole. A narrow
    card has two causes in a line of the legend, which takes half of the picture at most."""
    causes = [cause for cause in colours if any(spent.get(cause) for _, spent, _ in rows)]
    legend = LINE * ((len(causes) + 1) // 2)
    drawing = figure(height=max(134, 100 + height * len(rows), 2 * (legend + BESIDE)))
    places = [str(number + 1) for number in range(len(rows))]
    for cause in causes:
        shares = [spent.get(cause, 0.0) / (whole or 1.0) for _, spent, whole in rows]
        drawing.add_bar(
            orientation="h",
            name=str(cause),
            y=places,
            x=[100 * share for share in shares],
            width=0.6,
            marker={
                "color": colours[cause],
                "line": {"width": 0},
                "pattern": {"shape": HATCHED.get(cause, "")},
            },
            hovertext=[
                f"<b>{name}</b> · {cause}<br>{percent(share)} · {seconds(share * whole)}"
                for (name, _, whole), share in zip(rows, shares, strict=True)
            ],
            hoverinfo="text",
        )
    drawing.update_layout(barmode="stack")
    drawing.update_xaxes(ticksuffix=" %", fixedrange=True)
    drawing.update_yaxes(
        autorange="reversed",
        showgrid=False,
        fixedrange=True,
        type="category",
        tickvals=places,
        ticktext=[shorten(name, NAME) for name, _, _ in rows],
    )
    return drawing
