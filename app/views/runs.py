"""Runs: everything that was asked for, found again."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.launch.node_notice import node_notice
from app.components.runs.import_form import import_form
from app.components.runs.run_filter import run_filter
from app.components.runs.run_selection import selection_bar
from app.components.runs.run_table import run_order, run_table
from app.components.shell.boundary import guarded
from app.components.shell.layout import card, empty_state, page_header
from app.formats import count
from app.server.sessions import refresh_interval
from app.session import state
from app.session.state import Page, Param, bound
from backend.runs.history.listing import RunFilter

PER_PAGE = 20
MOST_PAGES = 10_000_000
REFRESH = 3.0


def page() -> None:
    """Filters, columns and order, which are in the URL, and one page of runs."""
    with page_header("Runs", "Profiles and trainings of the team."):
        import_form()
    if not services.backend().runs.list(limit=1).total:
        node_notice()
        empty_state(
            "No run yet",
            "Profile a model: that is the first run. Its profile leads to a plan, the plan to "
            "a training run.",
            Page.MODELS,
        )
        return
    wanted, columns = run_filter(run_order())
    st.fragment(_list, run_every=refresh_interval(REFRESH))(wanted, columns)


@guarded
def _list(wanted: RunFilter, columns: Sequence[str]) -> None:
    node_notice()
    runs, order = services.backend().runs, run_order()
    guess = _shown_page()
    found = runs.list(wanted, PER_PAGE, PER_PAGE * (guess - 1), order)
    table, below = st.container(), st.container()
    with below:
        number = _page_number(-(-found.total // PER_PAGE))
    if number != guess:
        found = runs.list(wanted, PER_PAGE, PER_PAGE * (number - 1), order)
    with table, card(count(found.total, "run")):
        selection_bar()
        if found.total:
            run_table(found.runs, columns, order)
        else:
            st.caption("No run matches these filters.")


def _shown_page() -> int:
    """The page that will most likely be shown: the list is asked for once."""
    chosen = st.session_state.get(Param.PAGE.value) or state.number(Param.PAGE) or 1
    return min(int(chosen), MOST_PAGES)


def _page_number(pages: int) -> int:
    if pages <= 1:
        return 1
    return st.pagination(pages, **bound(Param.PAGE))


page()
