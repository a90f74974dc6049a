"""Sweeps: runs that were asked for as one, and what became of them."""

import streamlit as st

from app import services
from app.components.launch.node_notice import node_notice
from app.components.shell.boundary import guarded
from app.components.shell.layout import card, empty_state, missing, page_header
from app.components.sweep.sweep_list import sweep_list
from app.components.sweep.sweep_view import (
    cancel_sweep,
    sweep_figures,
    sweep_lines,
    sweep_table,
)
from app.formats import count
from app.server.sessions import refresh_interval
from app.session import state
from app.session.links import page_link
from app.session.state import Page, Param

REFRESH = 4.0


@missing("Sweeps", Page.SWEEPS, "All sweeps")
def page() -> None:
    """The sweep that ?id= names, else all of them."""
    number = state.number(Param.ID)
    if number is not None:
        found = services.backend().sweeps.get(number)
        with page_header(f"{found.sweep.name} · sweep {number}"):
            cancel_sweep(found)
        page_link(Page.SWEEPS, "All sweeps", icon=":material/arrow_back:")
        waits = found.num_ended < len(found.sweep.run_ids)
        every = refresh_interval(REFRESH) if waits else None
        return st.fragment(_one, run_every=every)(number, waits)
    page_header("Sweeps", "Trainings over values of some settings, started as one action.")
    if not services.backend().sweeps.list(1):
        return empty_state(
            "No sweep yet",
            "Launch a saved plan, and give several values to a setting under Sweep.",
            Page.LAUNCH,
        )
    return st.fragment(_all, run_every=refresh_interval(REFRESH))()


@guarded
def _one(number: int, waited: bool) -> None:
    node_notice()
    found = services.backend().sweeps.get(number)
    if waited and found.num_ended == len(found.sweep.run_ids):
        st.rerun()
    sweep_figures(found)
    sweep_lines(found)
    sweep_table(found)


@guarded
def _all() -> None:
    found = services.backend().sweeps.list()
    with card(count(len(found), "sweep")):
        sweep_list(found)


page()
