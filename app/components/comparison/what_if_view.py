"""The curves of a sweep, what changes along them, and the same as a table."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from app.charts.frame import CONFIG
from app.charts.what_if import span, what_if
from app.components.shell.layout import card
from app.differences import UNKNOWN_WATTS
from app.formats import NOTHING, count, joules, number, percent, rate
from app.naming import plan_name
from backend.comparison.sweep import along
from backend.comparison.variations import Axis, Point, Prices, changes, plan_word

Value = Callable[[Point], float | None]
SPEED, COST, EACH, ENERGY = "Throughput", "Cost", "Throughput per device", "Energy"
REMARKS = {
    SPEED: "samples per second of the best plan",
    COST: "per million samples",
    EACH: "samples per second and device",
    ENERGY: "joules of the plan's devices per sample",
}


def what_if_view(every: Sequence[Point], measure: str, prices: Prices) -> None:
    """One panel per changed thing, as far as the sweep is."""
    value, text = _measure(measure, prices)
    if measure == ENERGY and every and not any(map(joules_of, every)):
        st.info(UNKNOWN_WATTS, icon=":material/bolt:")
    with st.container(key="panels-what-if"):
        for axis in Axis:
            points = along(every, axis)
            if points:
                _panel(axis, points, value, text, REMARKS[measure])
    if every:
        with st.expander("As a table", icon=":material/table:"):
            alt = "Best plan, throughput, cost and energy at every point"
            rows = point_rows([p for axis in Axis for p in along(every, axis)], prices)
            st.dataframe(rows, hide_index=True, key="what-if", alt=alt)


def _panel(
    axis: Axis,
    points: list[Point],
    value: Value,
    text: Callable[[float | None], str],
    remark: str,
) -> None:
    with card(axis.value.capitalize(), remark):
        drawing = what_if(axis, points, value, text)
        alt = f"{remark} over {axis.value}"
        st.plotly_chart(drawing, key=f"what-if-{axis.name}", config=CONFIG, alt=alt)
        st.caption(said(points) + near([value(point) for point in points]))


def near(values: Sequence[float | None]) -> str:
    """That the axis does not begin at 0, where it does not, and how little the values differ."""
    if span(values) is None:
        return ""
    known = [value for value in values if value is not None]
    share = percent(1 - min(known) / max(known))
    return f" The axis does not begin at 0: the lowest value is {share} below the highest."


def said(points: list[Point]) -> str:
    """Where the best plan changes, in a sentence."""
    known = [point for point in points if point.plan is not None]
    found = changes(points)
    parts = [f"**{plan_word(b)}** from {b.variation.label} on" for _, b in found]
    if found:
        first = found[0][0]
        parts.insert(0, f"**{plan_word(first)}** up to {first.variation.label}")
    if known and not parts:
        parts = [f"The best plan is **{plan_word(known[0])}** everywhere"]
    if len(known) < len(points):
        parts.append(f"no plan fits at {count(len(points) - len(known), 'point')}")
    several = any("n" in plan_word(point).split("-") for point in known)
    return "; ".join(parts) + "." + several * " n is a stage with several replicas."


def _measure(name: str, prices: Prices) -> tuple[Value, Callable[[float | None], str]]:
    if name == COST:
        return (lambda point: point.cost_per_million(prices)), number
    if name == EACH:
        return _each, rate
    if name == ENERGY:
        return joules_of, joules
    return (lambda point: point.samples_per_second), rate


def _each(point: Point) -> float | None:
    speed = point.samples_per_second
    return speed / point.variation.cluster.num_devices if speed else None


def joules_of(point: Point) -> float | None:
    """Of a sample; None where watts are not known, or no plan fits."""
    known = point.best.energy if point.best else None
    return known.joules if known else None


def point_rows(points: list[Point], prices: Prices) -> dict[str, list[Any]]:
    """The table by columns."""
    return {
        "changed": [point.variation.axis.value for point in points],
        "to": [
            point.variation.label + (" (as it is)" if point.variation.is_base else "")
            for point in points
        ],
        "best plan": [plan_name(p.plan) if p.plan else p.reason or NOTHING for p in points],
        "samples": [rate(point.samples_per_second) for point in points],
        "per million samples": [number(point.cost_per_million(prices)) for point in points],
        "per sample": [joules(joules_of(point)) for point in points],
    }
