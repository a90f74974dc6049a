"""Parallel coordinates: a line for each run of a sweep, through its values to its result."""

from collections.abc import Sequence
from math import log10
from typing import Any

import plotly.graph_objects as go

from app.charts.frame import figure
from app.charts.palette import BACKWARD, FORWARD, NEUTRAL
from app.formats import number
from backend.runs.sweeps.report import SweepReport, SweepResult

HEIGHT = 360
LABEL = 13  # pixels
DECADES = 0.9
"""An axis whose values span more is drawn by their logarithm."""
SCALE = ((0.0, FORWARD), (0.5, NEUTRAL), (1.0, BACKWARD))
"""From the best results to the worst."""


def parallel(found: SweepReport, larger: bool) -> go.Figure:
    """The runs that have told of the sweep's metric, coloured by it: those with the better values
    (`larger` or smaller) in the colour of the scale's beginning."""
    told = [each for each in found.results if each.metric is not None]
    sweep, metric = found.sweep, [each.metric or 0.0 for each in told]
    axes = [_axis(axis.name, [each.values[axis.name] for each in told]) for axis in sweep.spec.axes]
    rates = [each.samples_per_second for each in told]
    if all(rate is not None for rate in rates):
        axes.append(_axis("samples/s", rates, is_result=True))
    axes.append(_axis(sweep.spec.early.metric, metric, is_result=True))
    drawing = figure(HEIGHT, legend=False)
    drawing.update_layout(margin={"l": 48, "r": 48, "t": 56, "b": 24})
    drawing.add_trace(
        go.Parcoords(
            dimensions=axes,
            line={"color": metric, "colorscale": SCALE, "reversescale": larger},
            labelside="top",
            labelfont={"size": LABEL},
            tickfont={"size": LABEL - 1},
        )
    )
    return drawing


def alternative(found: SweepReport) -> str:
    """The picture in words."""
    told = [each for each in found.results if each.metric is not None]
    best = next((each for each in told if each.number == found.best), None)
    words = f"{len(told)} runs, each a line through its values to {found.sweep.spec.early.metric}"
    return f"{words}; the best is run {best.run_id} with {_values(best)}" if best else words


def _values(result: SweepResult) -> str:
    return ", ".join(f"{name} {value}" for name, value in result.values.items())


def _axis(name: str, values: Sequence[Any], is_result: bool = False) -> dict[str, Any]:
    """Numbers as they are or, of settings over decades, by their logarithm; else words."""
    if any(isinstance(value, bool | str) for value in values):
        words = sorted({str(value) for value in values})
        places = list(range(len(words)))
        found = [words.index(str(value)) for value in values]
        return {"label": name, "values": found, "tickvals": places, "ticktext": words}
    if not is_result and min(values) > 0 and log10(max(values) / min(values)) > DECADES:
        ticks = sorted(set(values)) if len(set(values)) <= 8 else _decades(values)
        return {
            "label": f"{name} (log)",
            "values": [log10(value) for value in values],
            "tickvals": [log10(tick) for tick in ticks],
            "ticktext": [number(tick) for tick in ticks],
        }
    ticks = sorted(set(values))
    shown = {"tickvals": ticks, "ticktext": [number(t) for t in ticks]} if len(ticks) <= 8 else {}
    return {"label": name, "values": list(values), **shown}


def _decades(values: Sequence[float]) -> list[float]:
    first, last = int(log10(min(values)) // 1), int(-(-log10(max(values)) // 1))
    return [10.0**power for power in range(first, last + 1)]
