"""A curve over one changed thing; where the best plan changes there is a line."""

from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.formats import NOTHING
from backend.comparison.variations import Axis, Point, changes, plan_word

NEAR, NOISE = 0.25, 5e-4
"""Parts of the largest value."""
TITLES = {
    Axis.DEVICES: "devices",
    Axis.DEVICE: "",
    Axis.BANDWIDTH: "GB/s of the outermost links",
    Axis.BATCH: "microbatches per update",
}


def what_if(
    axis: Axis,
    points: Sequence[Point],
    value: Callable[[Point], float | None],
    text: Callable[[float | None], str],
) -> go.Figure:
    """`value` of each point, written by `text` in the hover; the cluster as it is stands out."""
    drawing = figure(height=270, legend=False)
    values = [value(point) for point in points]
    drawing.add_scatter(
        x=_places(axis, points),
        y=values,
        mode="lines+markers",
        line={"color": palette.FORWARD, "width": 1.8},
        marker={
            "size": [12 if point.variation.is_base else 7 for point in points],
            "symbol": ["diamond" if point.variation.is_base else "circle" for point in points],
            "color": palette.FORWARD,
        },
        connectgaps=False,
        hovertext=[_hover(point, text(v)) for point, v in zip(points, values, strict=True)],
        hoverinfo="text",
    )
    _changes(drawing, axis, points)
    drawing.update_xaxes(
        title={"text": TITLES[axis]},
        type="category" if axis is Axis.DEVICE else "log",
        fixedrange=True,
        **_ticks(axis, points),
    )
    near = span(values)
    ends = {"rangemode": "tozero"} if near is None else {"range": near}
    drawing.update_yaxes(fixedrange=True, nticks=5, tickformat=",~r", **ends)
    return drawing


def span(values: Sequence[float | None]) -> tuple[float, float] | None:
    """The ends of an axis on which values that differ by less than `NEAR` are told apart; None
    where an axis from 0 shows them, or they are equal."""
    known = [value for value in values if value is not None]
    least, most = min(known, default=0.0), max(known, default=0.0)
    if not NOISE * most < most - least < NEAR * most:
        return None
    room = (most - least) / 8
    return least - room, most + room


def _places(axis: Axis, points: Sequence[Point]) -> list[float | str]:
    return [p.variation.label if axis is Axis.DEVICE else p.variation.value for p in points]


def _ticks(axis: Axis, points: Sequence[Point]) -> dict[str, list[object]]:
    if axis is Axis.DEVICE:
        return {}
    values: list[object] = [point.variation.value for point in points]
    return {"tickvals": values, "ticktext": [f"{value:,.4g}" for value in values]}


def _changes(drawing: go.Figure, axis: Axis, points: Sequence[Point]) -> None:
    """Between two neighbours, in the middle of the drawn axis."""
    shown = list(points)
    for before, after in changes(shown):
        a, b = before.variation.value, after.variation.value
        if axis is Axis.DEVICE:
            place = (shown.index(before) + shown.index(after)) / 2
        else:
            place = (a * b) ** 0.5
        drawing.add_vline(x=place, line={"color": palette.NEUTRAL, "dash": "dot", "width": 1.2})


def _hover(point: Point, text: str) -> str:
    base = " · as it is" if point.variation.is_base else ""
    head = f"<b>{point.variation.label}</b>{base}"
    if point.plan is None:
        return f"{head}<br>{NOTHING} no plan fits"
    return f"{head}<br>{text}<br>best plan {point.plan.label} ({plan_word(point)})"
