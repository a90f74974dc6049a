"""Runs: everything that was asked for, found again."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.boundary import guarded
from app.components.card import card
from app.components.empty_state import empty_state
from app.components.node_notice import node_notice
from app.components.page_header import page_header
from app.components.run_filter import run_filter
from app.components.run_selection import selection_bar
from app.components.run_table import run_order, run_table
from app.formats import count
from app.state import Page, Param
from backend.runs.listing import RunFilter

PER_PAGE = 20
REFRESH = 3.0


def page() -> None:
    """Filters, columns and order, which are in the URL, and one page of runs."""
    page_header("Runs", "Profiles and trainings of the team.")
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
    wanted, columns = run_filter()
    st.fragment(_list, run_every=REFRESH)(wanted, columns)


@guarded
def _list(wanted: RunFilter, columns: Sequence[str]) -> None:
    node_notice()
    runs, order = services.backend().runs, run_order()
    total = runs.list(wanted, limit=1).total
    table, below = st.container(), st.container()
    with below:
        number = _page_number(-(-total // PER_PAGE))
    with table, card(count(total, "run")):
        selection_bar()
        if total:
            run_table(
                runs.list(wanted, PER_PAGE, PER_PAGE * (number - 1), order).runs, columns, order
            )
        else:
            st.caption("No run meets these filters.")


def _page_number(pages: int) -> int:
    if pages <= 1:
        return 1
    return st.pagination(pages, key=Param.PAGE.value, bind="query-params")


page()
