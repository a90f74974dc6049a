"""The plans that there are, best first, to choose one."""

import re
from collections.abc import Sequence

import streamlit as st

from app import state
from app.formats import change, rate
from app.naming import partition_name
from app.state import Param
from backend.planning.catalog import PLANNERS
from backend.prediction.propose import Proposal

KEY = "alternative"


def alternatives(proposals: Sequence[Proposal]) -> Proposal:
    """The chosen proposal: the URL's planner, else the first. `proposals` is not empty."""
    by_planner = {found.prediction.plan.planner: found for found in proposals}
    named = state.text(Param.PLANNER)
    if st.session_state.get(KEY) not in by_planner:
        st.session_state[KEY] = named if named in by_planner else next(iter(by_planner))
    best = proposals[0].prediction.samples_per_second
    chosen: str = st.radio(
        "Plans",
        list(by_planner),
        key=KEY,
        format_func=lambda name: _label(by_planner[name]),
        captions=[_caption(found, best) for found in by_planner.values()],
        label_visibility="collapsed",
    )
    state.put(Param.PLANNER, chosen if chosen != next(iter(by_planner)) else None)
    return by_planner[chosen]


def _caption(found: Proposal, best: float) -> str:
    speed = found.prediction.samples_per_second
    behind = "best" if speed >= best else change(speed, best)
    return f"{rate(speed)} · {behind}"


def _label(found: Proposal) -> str:
    """Partition and planner: radio buttons need labels that differ."""
    plan = found.prediction.plan
    title = re.split("[:,]", PLANNERS[plan.planner].title)[0]
    return f"**{partition_name(plan.partition)}** · {title}"
