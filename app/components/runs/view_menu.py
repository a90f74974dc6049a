"""Views of the list of runs that are kept by name: opened, kept, deleted."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import streamlit as st

from app import services
from app.components.runs.run_columns import USUAL
from app.components.shell.allowed import why_not
from app.components.shell.boundary import guarded
from app.formats import plain
from app.naming import filter_words
from app.session import state
from app.session.state import Param
from backend.runs.history.listing import RunFilter, RunOrder, RunSort
from backend.runs.history.views import MAX_NAME, ListView, SavedView


def view_menu(wanted: RunFilter, order: RunOrder, columns: Sequence[str]) -> None:
    """The kept views, and a field to keep what is shown now."""
    with st.popover("Views", icon=":material/bookmark:"):
        views = services.backend().views.list()
        for view in views:
            _line(view)
        if not views:
            st.caption("No view yet. A view saves filters, order and columns under a name.")
        _keep_form(ListView(wanted, order, tuple(columns)))


def _line(view: SavedView) -> None:
    said = f"{filter_words(view.view.wanted)} · {'shared' if view.is_shared else 'yours'}"
    barred = why_not(view.project_id) if view.is_shared else None
    with st.container(horizontal=True, vertical_alignment="center", key=f"row-view-{view.id}"):
        st.button(
            plain(view.name),
            key=f"view-{view.id}",
            help=plain(said),
            on_click=_open,
            args=(view.view,),
            width="stretch",
        )
        st.button(
            "",
            key=f"delete-view-{view.id}",
            icon=":material/delete:",
            type="tertiary",
            help=barred or f"Delete the view {plain(view.name)}; the runs stay",
            disabled=barred is not None,
            on_click=_delete,
            args=(view.id,),
        )


@guarded
def _keep_form(view: ListView) -> None:
    with st.form("keep-view", border=False, clear_on_submit=True):
        name = st.text_input("Save this view as", max_chars=MAX_NAME, placeholder="a name")
        barred = why_not()
        shared = st.checkbox(
            "For everybody in the project", help=barred, disabled=barred is not None
        )
        if not st.form_submit_button("Save", type="primary", icon=":material/bookmark_add:"):
            return
    kept = services.backend().views.save(name, view, shared)
    state.done(f"The view is saved as {plain(kept.name)}")


@guarded
def _delete(view_id: int) -> None:
    found = services.backend().views.delete(view_id)
    state.notify(f"The view {found.name} is deleted")


def _open(view: ListView) -> None:
    """Every field of the page says what the view says."""
    wanted, zone = view.wanted, state.zone()
    fields: dict[Param, Any] = {
        Param.TEXT: wanted.text,
        Param.KIND: wanted.kind,
        Param.STATE: [found.value for found in wanted.states],
        Param.STARRED: wanted.starred,
        Param.OWNER: wanted.owner,
        Param.TAG: wanted.tag,
        Param.SINCE: wanted.since and wanted.since.astimezone(zone).date(),
        Param.UNTIL: wanted.until and (wanted.until.astimezone(zone) - timedelta(days=1)).date(),
        Param.ACCURACY_FROM: _in_percent(wanted.min_accuracy),
        Param.ACCURACY_TO: _in_percent(wanted.max_accuracy),
        Param.METRIC: wanted.metric,
        Param.METRIC_FROM: wanted.min_metric,
        Param.METRIC_TO: wanted.max_metric,
        Param.COLUMNS: list(view.columns or USUAL),
    }
    for param, value in fields.items():
        st.session_state[param.value] = value
    st.session_state.pop(Param.PAGE.value, None)
    state.put(Param.PAGE, None)
    state.put(Param.DEFINITION, wanted.definition_id)
    state.put(Param.PLAN, wanted.plan_id)
    state.put(Param.SORT, None if view.order.by is RunSort.CREATED else view.order.by.value)
    state.put(Param.ORDER, None if view.order.descending else "asc")


def _in_percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
