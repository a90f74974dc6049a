"""A predicted timeline: bars while they are few, with a window that fits the screen, else the
canvas; and the same as a table."""

import streamlit as st

from app.charts.bars import bars_of
from app.charts.canvas import canvas_bytes
from app.charts.frame import CONFIG
from app.charts.timeline import (
    MAX_BARS,
    Stretch,
    Window,
    num_microbatches,
    timeline,
    whole,
    within,
)
from app.components.action_table import action_table
from app.components.timeline_canvas import opening, timeline_canvas
from app.formats import count
from app.state import Param
from backend.pipeline.timeline import Timeline

ALT = "When each rank computes, sends and waits: one row per rank, time to the right"
LEGIBLE = 10  # microbatches side by side whose numbers can be read
PLACES = ("Start", "Middle", "End", "All")


def timeline_view(key: str, found: Timeline, rank_names: tuple[str, ...] = ()) -> None:
    """Draw it; when it is long, with a choice of the stretch that is shown. The URL holds the
    choice, so there is one of these on a page."""
    total = num_microbatches(found)
    if len(found.spans) > MAX_BARS:
        _canvas(key, found, rank_names)
    elif total <= LEGIBLE * 1.5:
        _draw(key, whole(found), rank_names)
    else:
        _stretch(key, found, total, rank_names)
    if st.toggle("As a table", key=Param.TABLE.value, bind="query-params"):
        action_table(key, bars_of(found), rank_names)


def _stretch(key: str, found: Timeline, total: int, rank_names: tuple[str, ...]) -> None:
    place = st.segmented_control(
        "Stretch",
        PLACES,
        default="Start",
        required=True,
        key=Param.SHOW.value,
        bind="query-params",
        label_visibility="collapsed",
    )
    window = _window(place, total)
    _draw(key, within(found, window), rank_names)
    st.caption(
        f"While microbatches {window.first} to {window.stop - 1} of {count(total)} are worked on."
    )


def _window(place: str | None, total: int) -> Window:
    match place:
        case "Middle":
            return Window((total - LEGIBLE) // 2, (total + LEGIBLE) // 2)
        case "End":
            return Window(total - LEGIBLE, total)
        case "All":
            return Window(0, total)
        case _:
            return Window(0, LEGIBLE)


def _draw(key: str, shown: Stretch, rank_names: tuple[str, ...]) -> None:
    drawing = timeline(shown, rank_names=rank_names)
    st.plotly_chart(drawing, key=f"{key}-chart", config=CONFIG, alt=ALT)


def _canvas(key: str, found: Timeline, rank_names: tuple[str, ...]) -> None:
    bars = bars_of(found)
    names = [*rank_names, *(f"rank {rank}" for rank in range(len(rank_names), bars.num_ranks))]
    param = Param.WINDOW.value
    data = canvas_bytes(bars, names=names, alt=ALT, param=param, first=opening(bars))
    timeline_canvas(f"{key}-canvas", data)
