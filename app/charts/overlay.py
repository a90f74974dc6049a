"""One metric of several runs on one axis, as a Vega-Lite specification.

Vega-Lite for the reason that `curve` gives: it is updated in place while runs are live.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.charts import palette
from app.charts.curve import hovered, labels

X, Y, SMOOTHED, RUN = "x", "value", "smoothed", "run"
SERIES = tuple((colour, dash) for dash in ([1, 0], [5, 3]) for colour in palette.SERIES)
"""Colour and dash of each run, in order."""
FEW = 30


@dataclass(frozen=True, slots=True)
class Curve:
    """A run's points: `smoothed` beside the `values` as they were told."""

    name: str
    x: Sequence[float]
    values: Sequence[float]
    smoothed: Sequence[float]


def rows(lines: Sequence[Curve]) -> dict[str, list[Any]]:
    """The data by columns."""
    return {
        RUN: [line.name for line in lines for _ in line.x],
        X: [x for line in lines for x in line.x],
        Y: [value for line in lines for value in line.values],
        SMOOTHED: [value for line in lines for value in line.smoothed],
    }


def overlay(
    lines: Sequence[Curve],
    *,
    axis: str,
    name: str,
    share: bool = False,
    raw: bool = False,
    log: bool = False,
    height: int = 340,
) -> dict[str, Any]:
    """How to draw them. `raw` shows the values faintly below their average, `share` writes
    percents, `log` makes the height logarithmic."""
    names = [line.name for line in lines]
    looks = [SERIES[number % len(SERIES)] for number in range(len(names))]
    colour = {
        "field": RUN,
        "type": "nominal",
        "scale": {"domain": names, "range": [colour for colour, _ in looks]},
        "legend": {"orient": "top", "title": None, "labelLimit": 320, "columns": 4},
    }
    dash = {
        "field": RUN,
        "type": "nominal",
        "scale": {"domain": names, "range": [dash for _, dash in looks]},
        "legend": None,
    }
    across = {
        "field": X,
        "type": "quantitative",
        "title": axis,
        "axis": {
            "grid": False,
            "format": ",~r",
            "tickCount": 12,
            "labelFlush": True,
            "labelFlushOffset": -3,  # pixels inwards: the last number is not cut off
        },
    }
    hover = [
        {"field": RUN, "title": "run"},
        {"field": X, "title": axis, "type": "quantitative", "format": ",.4~g"},
        {"field": SMOOTHED, "title": name, "type": "quantitative", "format": hovered(name, share)},
    ]
    few = max((len(line.x) for line in lines), default=0) <= FEW
    dots = {"type": "point", "filled": True, "size": 36, "opacity": 1 if few else 0}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line", "strokeWidth": 1.8}, "encoding": {"strokeDash": dash}},
        {"mark": dots, "encoding": {"tooltip": hover}},
    ]
    written = labels(name, share, [] if log else [value for line in lines for value in line.values])
    up = _height(SMOOTHED, written, log)
    for layer in layers:
        layer["encoding"]["y"] = up
    if raw:
        faint = {"type": "line", "strokeWidth": 1, "opacity": 0.22}
        layers.insert(0, {"mark": faint, "encoding": {"y": _height(Y, written, log)}})
    return {"height": height, "encoding": {"x": across, "color": colour}, "layer": layers}


def _height(field: str, written: dict[str, Any], log: bool) -> dict[str, Any]:
    return {
        "field": field,
        "type": "quantitative",
        "title": None,
        "axis": written,
        "scale": {"type": "log"} if log else {"zero": False},
    }
