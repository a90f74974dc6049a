"""A timeline of any length, drawn on a canvas, and the same as a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app.charts.bars import KINDS, Bars, bars_of
from app.charts.canvas import SCRIPT, STYLE, WORDS, canvas_bytes, opening, row_names
from app.formats import NOTHING, count, seconds
from app.session.state import Param, bound
from backend.pipeline.timeline import Timeline

ALT = "When each rank computes, sends and waits: one row per rank, time to the right"
TABLE = "Rank, action, stage, microbatch, start and length of every action"
MOST = 2_000  # rows

_canvas = st.components.v2.component(
    "stageflow_timeline", css=STYLE.read_text(), js=SCRIPT.read_text()
)


def timeline_canvas(key: str, data: bytes) -> None:
    """Draw what `app.charts.canvas.canvas_bytes` has packed: zoom, pan, hover and keys."""
    _canvas(key=key, data=data)


def timeline_view(
    key: str,
    found: Timeline,
    rank_names: tuple[str, ...] = (),
    slack: NDArray[np.float64] | None = None,
) -> None:
    """Draw it, with the `slack` of its actions, and the table where that is asked for. The URL
    holds the window, so there is one of these on a page."""
    bars = bars_of(found)
    names = row_names(rank_names, bars)
    param = Param.WINDOW.value
    data = canvas_bytes(bars, names=names, alt=ALT, param=param, first=opening(bars), slack=slack)
    timeline_canvas(f"{key}-canvas", data)
    if not st.toggle("As a table", **bound(Param.TABLE)):
        return
    rows = action_rows(bars, names)
    st.dataframe(rows, hide_index=True, height=360, key=f"{key}-actions", alt=TABLE)
    if len(bars) > MOST:
        st.caption(f"The first {MOST:,} of {count(len(bars), 'action')}.")


def action_rows(bars: Bars, names: Sequence[str]) -> dict[str, list[Any]]:
    """The first `MOST` actions in the order of their starts, by columns; `names` of the ranks."""
    first = np.lexsort((bars.rank, bars.start))[:MOST]
    return {
        "rank": [names[rank] for rank in bars.rank[first]],
        "action": [WORDS[KINDS[kind]] for kind in bars.kind[first]],
        "stage": bars.stage[first].tolist(),
        "microbatch": [NOTHING if m < 0 else count(int(m)) for m in bars.microbatch[first]],
        "weights": [NOTHING if v < 0 else f"version {v}" for v in bars.version[first]],
        "from": [seconds(float(start)) for start in bars.start[first]],
        "takes": [seconds(float(long)) for long in bars.seconds[first]],
    }
