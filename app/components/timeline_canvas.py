"""A timeline of any length: zoom, pan, hover and keys, drawn on a canvas."""

from pathlib import Path

import numpy as np
import streamlit as st

from app.charts.bars import Bars

HERE = Path(__file__).parent / "canvas"
LEGIBLE = 10  # microbatches side by side whose numbers can be read

_canvas = st.components.v2.component(
    "stageflow_timeline",
    css=(HERE / "canvas.css").read_text(),
    js=(HERE / "canvas.js").read_text(),
)


def timeline_canvas(key: str, data: bytes) -> None:
    """Draw what `app.charts.canvas.canvas_bytes` has packed."""
    _canvas(key=key, data=data)


def opening(bars: Bars) -> tuple[float, float] | None:
    """The window in which the first microbatches are worked on, in seconds; None where that
    is all there is."""
    first = (bars.microbatch >= 0) & (bars.microbatch < LEGIBLE)
    if not first.any() or bars.microbatch.max() < 1.5 * LEGIBLE:
        return None
    return float(np.min(bars.start[first])), float(np.max(bars.end[first]))
