"""One metric over the minibatches of a run, as a Vega-Lite specification.

Not Plotly, because Streamlit takes a Plotly chart away and puts a new one there whenever its
data changes, which flickers while a run is live; a Vega-Lite chart it updates in place.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import Any

from app.charts.palette import CURVE, NEUTRAL, SERIES
from app.formats import BYTES, size_unit

X, Y, LINES = "minibatch", "value", "line"
FEW = 30
PERCENTS = "format(100 * datum.value, '~r') + '\u00a0%'"
"""How an axis of shares is labelled, as `app.formats.percent` writes them."""
_UNITS = ((3, "GiB"), (2, "MiB"), (1, "KiB"), (0, "B"))
SIZES = "".join(
    f"{f'datum.value >= {1024**power} ? ' if power else ''}"
    f"format(datum.value / {1024**power}, '.3~r') + '\u00a0{unit}'{' : ' if power else ''}"
    for power, unit in _UNITS
)
"""The same of bytes, as `app.formats.size` writes them."""
ONCE = [{"window": [{"op": "row_number", "as": "row"}]}, {"filter": "datum.row == 1"}]
"""What is drawn then is drawn once, and not for each point."""
TICKS = 5
"""Spaces between the numbers of an axis of bytes."""
LINE, ROWS = 14, 4
"""Pixels of a line of words, and lines that are used in turn."""


def curve(
    num_points: int,
    *,
    name: str,
    target: float | None = None,
    share: bool = False,
    height: int = 240,
    marks: Mapping[int, str] | None = None,
    lines: Sequence[str] = (),
    values: Sequence[float] = (),
) -> dict[str, Any]:
    """How to draw them: a line, dots when they are few, `target` as a dashed level; `share`
    writes percents. `marks`: what changed at which minibatch, as upright lines with words. With
    `lines` there is one of each of these names, which the points have under `LINES`. `values`: of
    the points, for the numbers beside them."""
    whole = {"grid": False, "tickMinStep": 1, "format": ",.0f", "tickCount": 6, "labelFlush": True}
    encoding = {
        "x": {"field": X, "type": "quantitative", "axis": whole, "scale": {"nice": False}},
        "y": {
            "field": Y,
            "type": "quantitative",
            "title": None,
            "axis": labels(name, share, values),
            "scale": {"zero": False},
        },
    }
    hover = [
        {"field": X, "type": "quantitative", "format": ",.0f"},
        {"field": Y, "title": name, "type": "quantitative", "format": hovered(name, share)},
    ]
    line = {"type": "line", "color": CURVE, "strokeWidth": 1.6}
    dots = {"type": "point", "color": CURVE, "filled": True, "size": 40}
    each: dict[str, Any] = {}
    if lines:
        colours = [SERIES[place % len(SERIES)] for place in range(len(lines))]
        scale = {"domain": list(lines), "range": colours}
        key = {"orient": "top", "title": None}
        each = {"color": {"field": LINES, "type": "nominal", "legend": key, "scale": scale}}
        hover.insert(0, {"field": LINES, "title": "of", "type": "nominal"})
        del line["color"], dots["color"]
    dots["opacity"] = 1 if num_points <= FEW else 0  # invisible, they still take the hover
    return {
        "height": height,
        "encoding": encoding,
        "layer": [
            {"mark": line, "encoding": each},
            {"mark": dots, "encoding": {"tooltip": hover, **each}},
        ]
        + ([_level(target)] if target is not None else [])
        + [_mark(step, words) for step, words in (marks or {}).items()]
        + [_words(place, *each) for place, each in enumerate((marks or {}).items())],
    }


def labels(name: str, share: bool, values: Sequence[float] = ()) -> dict[str, Any]:
    """How the height of a metric is labelled: by its unit, where it has one; bytes at round numbers
    of it, between the least and the most of `values`."""
    if share:
        return {"labelExpr": PERCENTS}
    if name not in BYTES:
        return {}
    return {"labelExpr": SIZES} | (
        {"values": round_sizes(min(values), max(values))} if values else {}
    )


def round_sizes(least: float, most: float) -> list[float]:
    """Bytes from below `least` to above `most`, a whole number of 1, 2 or 5 of their unit, or of a
    power of ten of that, apart: some `TICKS` of them."""
    if least == most:
        return [most]
    unit = 1 / size_unit(most)[0]
    wanted = max((most - least) / TICKS, unit / 1000)
    power = 10.0 ** floor(log10(wanted / unit))
    step = unit * power * next(n for n in (1, 2, 5, 10) if n * unit * power >= wanted * (1 - 1e-9))
    return [number * step for number in range(floor(least / step), ceil(most / step) + 1)]


def hovered(name: str, share: bool) -> str:
    """The format of a value that is pointed at; bytes are written out."""
    if share:
        return ".1%"
    return ",.0f" if name in BYTES else ".4g"


def _mark(step: int, words: str) -> dict[str, Any]:
    return {
        "transform": ONCE,
        "mark": {"type": "rule", "color": NEUTRAL, "strokeDash": [2, 3], "tooltip": words},
        "encoding": {"x": {"datum": step}, "y": None},
    }


def _words(place: int, step: int, words: str) -> dict[str, Any]:
    """On the side of the line that has room, lower than those of the mark before."""
    is_late = f"scale('x', {step}) > width / 2"
    return {
        "transform": ONCE,
        "mark": {
            "type": "text",
            "text": words,
            "color": NEUTRAL,
            "baseline": "top",
            "align": {"expr": f"{is_late} ? 'right' : 'left'"},
            "dx": {"expr": f"{is_late} ? -5 : 5"},
            "dy": LINE * (place % ROWS),
        },
        "encoding": {"x": {"datum": step}, "y": {"value": 0}},
    }


def _level(target: float) -> dict[str, Any]:
    return {
        "mark": {"type": "rule", "color": NEUTRAL, "strokeDash": [5, 4]},
        "encoding": {"x": None, "y": {"datum": target}},
    }
