"""Runs: everything that was asked for, found again."""

from typing import Any, cast

import streamlit as st

from app import services
from app.boundary import guarded
from app.components.card import card
from app.components.empty_state import empty_state
from app.components.node_notice import node_notice
from app.components.page_header import page_header
from app.components.run_table import run_table
from app.formats import count
from app.state import Page, Param
from backend.runs.listing import RunFilter
from backend.runs.states import RunState

PER_PAGE = 20
REFRESH = 3.0
KINDS = ("train", "profile")


def page() -> None:
    """Filters, which are in the URL, and one page of runs."""
    page_header("Runs", "Profiles and trainings of the team, newest first.")
    if not services.backend().runs.list(limit=1).total:
        node_notice()
        empty_state(
            "No run yet",
            "Profile a model: that is the first run. Its profile leads to a plan, the plan to "
            "a training run.",
            Page.MODELS,
            "Go to Models",
        )
        return
    wanted = _filter()
    st.fragment(_list, run_every=REFRESH)(wanted)


def _filter() -> RunFilter:
    with st.container(horizontal=True, vertical_alignment="top", key="run-filter"):
        text = st.text_input(
            "Search",
            key=Param.TEXT.value,
            bind="query-params",
            placeholder="Name",
            icon=":material/search:",
            width=280,
        )
        kind = st.segmented_control("Kind", KINDS, key=Param.KIND.value, bind="query-params")
        states = st.pills(
            "State",
            [found.value for found in RunState],
            selection_mode="multi",
            key=Param.STATE.value,
            bind="query-params",
        )
    return RunFilter(
        states=tuple(RunState(name) for name in cast(Any, states)),
        kind=kind,
        text=(text or "").strip(),
    )


@guarded
def _list(wanted: RunFilter) -> None:
    node_notice()
    runs = services.backend().runs
    total = runs.list(wanted, limit=1).total
    table, below = st.container(), st.container()
    with below:
        number = _page_number(-(-total // PER_PAGE))
    with table, card(count(total, "run")):
        if total:
            run_table(runs.list(wanted, PER_PAGE, PER_PAGE * (number - 1)).runs)
        else:
            st.caption("No run meets these filters.")


def _page_number(pages: int) -> int:
    if pages <= 1:
        return 1
    return st.pagination(pages, key=Param.PAGE.value, bind="query-params")


page()
