"""The plans that there are, best first, each with what decides it, to choose one."""

import re
from collections.abc import Sequence

import streamlit as st

from app import state
from app.formats import change, plain, rate
from app.naming import BY_HAND, partition_name
from app.state import Param
from backend.planning.catalog import PLANNERS
from backend.prediction.propose import Proposal

KEY = "alternative"


def chosen_planner(proposals: Sequence[Proposal]) -> Proposal:
    """The proposal of the planner that the URL names, else the first; there is one."""
    named = state.text(Param.PLANNER)
    planners = {found.prediction.plan.planner: found for found in proposals}
    return planners.get(named, proposals[0])


def alternatives(proposals: Sequence[Proposal], chosen: Proposal) -> None:
    """All of them, `chosen` marked; the one by hand, where it is chosen, in its rank."""
    shown = list(proposals)
    if chosen not in shown:
        shown.append(chosen)
        shown.sort(key=lambda found: -found.prediction.samples_per_second)
    by_planner = {found.prediction.plan.planner: found for found in shown}
    best = shown[0].prediction.samples_per_second
    st.session_state[KEY] = chosen.prediction.plan.planner
    st.radio(
        "Plans",
        list(by_planner),
        key=KEY,
        format_func=lambda name: _label(by_planner[name]),
        captions=[_caption(found, best) for found in by_planner.values()],
        label_visibility="collapsed",
        on_change=_choose,
        args=(proposals[0].prediction.plan.planner,),
    )


def _choose(first: str) -> None:
    wanted = st.session_state[KEY]
    if wanted != BY_HAND:
        state.put(Param.PLANNER, wanted if wanted != first else None)
        state.put(Param.CUT, None)


def _caption(found: Proposal, best: float) -> str:
    speed = found.prediction.samples_per_second
    behind = "best" if speed >= best else change(speed, best)
    return f"**{rate(speed)}** · {behind}  \n{plain(found.reason)}"


def _label(found: Proposal) -> str:
    """Partition and planner: radio buttons need labels that differ."""
    plan = found.prediction.plan
    if plan.planner == BY_HAND:
        return f"**{partition_name(plan.partition)}** · Edited by hand"
    title = re.split("[:,]", PLANNERS[plan.planner].title)[0]
    return f"**{partition_name(plan.partition)}** · {title}"
