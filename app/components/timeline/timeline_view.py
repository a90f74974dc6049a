"""A predicted timeline, and the same as a table."""

import streamlit as st

from app.charts.bars import bars_of
from app.charts.canvas import canvas_bytes, opening, row_names
from app.components.timeline.action_table import action_table
from app.components.timeline.timeline_canvas import timeline_canvas
from app.session.state import Param, bound
from backend.pipeline.timeline import Timeline

ALT = "When each rank computes, sends and waits: one row per rank, time to the right"


def timeline_view(key: str, found: Timeline, rank_names: tuple[str, ...] = ()) -> None:
    """Draw it, and the table where that is asked for. The URL holds the window, so there is one
    of these on a page."""
    bars = bars_of(found)
    names = row_names(rank_names, bars)
    param = Param.WINDOW.value
    data = canvas_bytes(bars, names=names, alt=ALT, param=param, first=opening(bars))
    timeline_canvas(f"{key}-canvas", data)
    if st.toggle("As a table", **bound(Param.TABLE)):
        action_table(key, bars, rank_names)
