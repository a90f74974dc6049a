"""Which of many layers a chart shows."""

from collections.abc import Sequence

import streamlit as st

from app.charts.frame import CONFIG
from app.charts.groups import LayerGroup
from app.charts.layer_overview import layer_overview

MANY = 60
"""Groups from which on one may look at a part of them."""
STILL = {"displayModeBar": False}
ALT = "The whole network, with the part that the chart shows"


def layer_window(found: Sequence[LayerGroup]) -> tuple[int, int]:
    """The first group that is shown and the one behind the last; all of them where they are few.
    Below the choice the whole network, with the window marked."""
    whole = (0, len(found))
    if len(found) <= MANY:
        return whole
    names = [f"{number} · {group.label}" for number, group in enumerate(found)]
    ends = st.select_slider(
        "Zoom: from, to",
        options=range(len(found)),
        value=(0, len(found) - 1),
        format_func=names.__getitem__,
        key=f"layer-window-{len(found)}",
    )
    window = (ends[0], ends[1] + 1)
    if window != whole:
        drawing = layer_overview(found, window)
        st.plotly_chart(drawing, key="layer-overview", config=CONFIG | STILL, alt=ALT)
    return window
