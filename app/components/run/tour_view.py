"""The example, carried from model to trained by one click: its button, its progress, its end."""

from dataclasses import dataclass

import streamlit as st

from app import services
from app.components.run.run_progress import RECENT, run_progress
from app.components.runs.run_words import run_link, state_badge
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import error_box, guarded
from app.example import Tour
from app.formats import plain
from app.server.sessions import refresh_interval
from backend.runs.run import Run

REFRESH = 1.5


@dataclass(slots=True)
class Guide:
    """The tour of this process, for all its visitors: the example is carried once at a time."""

    tour: Tour | None = None


@st.cache_resource(show_spinner=False, max_entries=4)
def guide(sql_url: str) -> Guide:
    """One per database."""
    return Guide()


def tour_view() -> None:
    """The button while nothing runs; else the runs so far, followed to their end."""
    found = guide(services.backend().settings.sql_url)
    running = found.tour is not None and found.tour.is_running
    st.fragment(_tour, run_every=refresh_interval(REFRESH) if running else None)(found, running)


@guarded
def _tour(found: Guide, was_running: bool) -> None:
    """Drawn again while the tour goes on, and once more by the page when it has ended."""
    tour = found.tour
    if was_running and tour is not None and not tour.is_running:
        st.rerun()
    if tour is not None:
        _progress(tour)
    if tour is not None and tour.is_running:
        st.button("Cancel", icon=":material/stop_circle:", on_click=_cancel, args=(tour,))
        return
    if st.button(
        "Run the example" if tour is None else "Run the example again",
        icon=":material/play_arrow:",
        type="primary" if tour is None else "secondary",
        **closed(why_not()),
    ):
        found.tour = Tour(services.backend())
        st.rerun()


@guarded
def _cancel(tour: Tour) -> None:
    """In the name of the visitor, who may not be the one who started it."""
    for run_id in tuple(tour.runs[-1:]):
        services.backend().runs.cancel(run_id)
    tour.cancel()


def _progress(tour: Tour) -> None:
    runs = services.backend().runs
    if tour.fault is not None:
        error_box(tour.fault)
    for run in runs.several(tuple(tour.runs)):
        _line(run)
        if reason := runs.why_waiting(run):
            st.warning(plain(reason), icon=":material/hourglass_empty:")


def _line(run: Run) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        state_badge(run.state)
        run_link(run)
    run_progress(run, services.backend().runs.metrics.last(run.id, "loss", RECENT))
