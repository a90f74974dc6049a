"""One metric over the minibatches of a run."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure

MAX_POINTS = 1_500


def curve(
    steps: Sequence[int],
    values: Sequence[float],
    *,
    name: str,
    target: float | None = None,
    share: bool = False,
    height: int = 240,
) -> go.Figure:
    """A line of `values` at `steps`; `target` as a dashed level; `share` writes percents.

    Above `MAX_POINTS` points each drawn point is the mean of neighbours.
    """
    drawing = figure(height, legend=False)
    xs, ys = _thin(steps, values)
    drawing.add_scatter(
        x=xs,
        y=ys,
        name=name,
        mode="lines" if len(xs) > 30 else "lines+markers",
        line={"color": palette.FORWARD, "width": 1.6},
        marker={"size": 5},
        hovertemplate="minibatch %{x:,}<br>"
        + name
        + " %{y:"
        + (".1%" if share else ".4g")
        + "}<extra></extra>",
    )
    if target is not None:
        drawing.add_hline(
            y=target,
            line={"color": palette.NEUTRAL, "width": 1, "dash": "dash"},
            annotation={"text": "target", "font": {"size": 11, "color": palette.NEUTRAL}},
        )
    drawing.update_xaxes(title={"text": "minibatch"})
    drawing.update_yaxes(tickformat=".0%" if share else None)
    return drawing


def _thin(steps: Sequence[int], values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    width = -(-len(steps) // MAX_POINTS)
    if width <= 1:
        return steps, values
    starts = range(0, len(steps), width)
    return (
        [_mean(steps[i : i + width]) for i in starts],
        [_mean(values[i : i + width]) for i in starts],
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
