"""What devices use, over time: a row of cells per device, stronger where more is used.

A line per device would be unreadable with sixteen of them, all near 95 %. Vega-Lite, as `curve`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.charts.palette import NEUTRAL
from app.formats import NOTHING, SPACE, percent, size
from backend.runs.use import Use, UsePoint, largest, thinned

START, END, DEVICE, PLACE = "start", "end", "device", "place"
SHARE, TEXT = "share", "text"
CELLS, FEWEST = 2400, 40
"""About so many in a picture, and at least so many for each device."""
ROW, AXIS = 22, 50  # pixels
LETTERS = 34
MOMENT = (
    "timeFormat(datum.value, seconds(datum.value) ? '%H:%M:%S'"
    " : hours(datum.value) || minutes(datum.value) ? '%H:%M' : '%d %b')"
)
"""A tick of the axis, by the 24-hour clock as all times of the pages."""


@dataclass(frozen=True, slots=True)
class UseMeasure:
    """What is drawn in one picture; None where it is not known. `most`: the value of the strongest
    cell, where that is not the largest."""

    title: str
    value: Callable[[Use], float | None]
    text: Callable[[float], str]
    most: Callable[[Use], float | None] | None = None


def _network(use: Use) -> float | None:
    return None if use.sent is None or use.received is None else use.sent + use.received


MEASURES = (
    UseMeasure("Compute", lambda use: use.share, lambda value: percent(value, 0), lambda use: 1.0),
    UseMeasure("Memory", lambda use: use.memory, size, lambda use: use.total),
    UseMeasure("Network", _network, lambda value: f"{size(value)}/s"),
    UseMeasure("Power", lambda use: use.watts, lambda value: f"{value:.0f}{SPACE}W"),
)


def measures_of(points: Sequence[UsePoint]) -> list[UseMeasure]:
    """Those that some device tells."""
    return [each for each in MEASURES if largest(points, each.value) is not None]


def use_rows(
    points: Sequence[UsePoint], measure: UseMeasure, names: Mapping[int, str]
) -> dict[str, list[Any]]:
    """The cells by columns; each device, by its place, has its newest value behind its name. Times
    in milliseconds, as Vega has them."""
    places = range(max((len(point.uses) for point in points), default=0))
    drawn = thinned(points, max(FEWEST, CELLS // max(1, len(places))))
    ends = [point.time for point in drawn[1:]] + [points[-1].time]
    steps = [end - point.time for point, end in zip(drawn, ends, strict=True)]
    usual = 2 * sorted(steps)[len(steps) // 2]
    most = largest(points, measure.most or measure.value) or largest(points, measure.value) or 1.0
    found: dict[str, list[Any]] = {name: [] for name in (START, END, DEVICE, PLACE, SHARE, TEXT)}
    for place in places:
        label = _label(points, place, measure, names)
        for point, step in zip(drawn, steps, strict=True):
            use = point.uses[place] if place < len(point.uses) else Use("")
            value = measure.value(use)
            if value is not None:
                end = point.time + (min(step, usual) or usual or 5.0)
                row = (1e3 * point.time, 1e3 * end, label, place, min(1.0, value / most))
                for name, each in zip(found, (*row, measure.text(value)), strict=True):
                    found[name].append(each)
    return found


def _label(
    points: Sequence[UsePoint], place: int, measure: UseMeasure, names: Mapping[int, str]
) -> str:
    uses = [point.uses[place] for point in reversed(points) if place < len(point.uses)]
    known = (value for use in uses if (value := measure.value(use)) is not None)
    newest = next(known, None)
    name = names.get(place) or next((use.name for use in uses if use.name), "")
    return f"{name[:LETTERS]} · {NOTHING if newest is None else measure.text(newest)}"


def use_chart(num_devices: int) -> dict[str, Any]:
    """How to draw the cells."""
    axis = {"grid": False, "title": None, "tickCount": 5, "labelFlush": True, "labelExpr": MOMENT}
    hover = [
        {"field": DEVICE, "type": "nominal", "title": "device, now"},
        {"field": START, "type": "temporal", "title": "at", "format": "%H:%M:%S"},
        {"field": TEXT, "type": "nominal", "title": "value"},
    ]
    return {
        "height": ROW * num_devices + AXIS,
        "mark": {"type": "rect", "color": NEUTRAL},
        "encoding": {
            "x": {"field": START, "type": "temporal", "axis": axis},
            "x2": {"field": END},
            "y": {
                "field": DEVICE,
                "type": "nominal",
                "sort": {"field": PLACE, "op": "min"},  # labels change while one looks
                "title": None,
                "axis": {"labelLimit": 320, "minExtent": 150, "ticks": False, "domain": False},
                "scale": {"paddingInner": 0.18},
            },
            "opacity": {
                "field": SHARE,
                "type": "quantitative",
                "legend": None,
                "scale": {"domain": [0, 1], "range": [0.07, 1]},
            },
            "tooltip": hover,
        },
    }
