"""Runs as rows: each opens its page and can be picked; headings sort."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from app.components.runs.run_columns import COLUMNS, NAME, SORTS
from app.components.runs.run_selection import pick_box, pick_page_box
from app.components.shell.grid import Column, grid
from app.components.shell.layout import card
from app.session import state
from app.session.state import Param
from backend.runs.history.listing import RunOrder, RunSort
from backend.runs.run import Run

ASCENDING = "asc"
NEWEST = ("State", "Plan", "Accuracy", "Owner", "Created")
UPWARDS = (RunSort.NAME, RunSort.OWNER, RunSort.STATE)
"""What a first click sorts from A to Z; everything else from the largest down."""


def run_order() -> RunOrder:
    """The order that the URL names; the newest first without one."""
    named = state.text(Param.SORT)
    by = RunSort(named) if named in tuple(RunSort) else RunSort.CREATED
    return RunOrder(by, state.text(Param.ORDER) != ASCENDING)


def run_table(runs: Sequence[Run], columns: Sequence[str], order: RunOrder) -> None:
    """One page of runs with the columns of these names."""
    chosen = [COLUMNS[name] for name in columns if name in COLUMNS]
    picked: Column[Run] = Column("", 0.35, pick_box, lambda: pick_page_box(runs))
    shown = (replace(column, head=_heading(column.title, order)) for column in (NAME, *chosen))
    grid("runs", (picked, *shown), runs)


def newest_runs(runs: Sequence[Run]) -> None:
    """The last few runs of the team; nothing where there is none."""
    if runs:
        with card("Newest runs"):
            grid("newest", (NAME, *(COLUMNS[name] for name in NEWEST)), runs)


def _heading(title: str, order: RunOrder) -> Callable[[], object] | None:
    by = SORTS.get(title)
    if by is None:
        return None
    arrow = ("↓" if order.descending else "↑") if by is order.by else ""
    turn = not order.descending if by is order.by else by not in UPWARDS
    return lambda: st.button(
        f"{title} {arrow}".strip(),
        key=f"sort-{by.value}",
        type="tertiary",
        help=f"Sort by {title.lower()}",
        on_click=_sort,
        args=(by, turn),
    )


def _sort(by: RunSort, descending: bool) -> None:
    state.put(Param.SORT, None if by is RunSort.CREATED else by.value)
    state.put(Param.ORDER, None if descending else ASCENDING)
    if Param.PAGE.value in st.session_state:
        st.session_state[Param.PAGE.value] = 1
