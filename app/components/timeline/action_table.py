"""The actions of a timeline as a table: what its picture says, in words and figures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from app.charts.bars import KINDS, Bars
from app.charts.canvas import WORDS
from app.formats import NOTHING, count, seconds

MOST = 2_000
ALT = "Rank, action, stage, microbatch, start and length of every action"


def action_table(key: str, bars: Bars, rank_names: Sequence[str] = ()) -> None:
    """In the order of their starts; the first `MOST` where there are more."""
    st.dataframe(
        action_rows(bars, rank_names),
        hide_index=True,
        height=360,
        key=f"{key}-actions",
        alt=ALT,
    )
    if len(bars) > MOST:
        st.caption(f"The first {MOST:,} of {count(len(bars), 'action')}.")


def action_rows(bars: Bars, rank_names: Sequence[str] = ()) -> dict[str, list[Any]]:
    """The table by columns."""
    first = np.lexsort((bars.rank, bars.start))[:MOST]
    named = dict(enumerate(rank_names))
    return {
        "rank": [named.get(int(rank), str(rank)) for rank in bars.rank[first]],
        "action": [WORDS[KINDS[kind]] for kind in bars.kind[first]],
        "stage": bars.stage[first].tolist(),
        "microbatch": [NOTHING if m < 0 else count(int(m)) for m in bars.microbatch[first]],
        "weights": [NOTHING if v < 0 else f"version {v}" for v in bars.version[first]],
        "from": [seconds(float(start)) for start in bars.start[first]],
        "takes": [seconds(float(long)) for long in bars.seconds[first]],
    }
