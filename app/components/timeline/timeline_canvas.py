"""A timeline of any length: zoom, pan, hover and keys, drawn on a canvas."""

import streamlit as st

from app.charts.canvas import SCRIPT, STYLE

_canvas = st.components.v2.component(
    "stageflow_timeline", css=STYLE.read_text(), js=SCRIPT.read_text()
)


def timeline_canvas(key: str, data: bytes) -> None:
    """Draw what `app.charts.canvas.canvas_bytes` has packed."""
    _canvas(key=key, data=data)
