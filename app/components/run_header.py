"""What run this is, who works on it, and what can be done with it."""

import orjson
import streamlit as st

from app import services, state
from app.components.page_header import page_header
from app.components.run_table import plan_label, took
from app.components.state_badge import state_badge
from app.export import run_document
from app.formats import moment, plain
from app.state import Page
from backend.runs.run import Run
from backend.runs.spec import TrainSpec


def run_header(run: Run) -> None:
    """Title and actions; the changing part is `run_line`."""
    with page_header(f"{plain(run.name)} · run {run.id}"):
        _onwards(run)
        st.download_button(
            "Export JSON",
            data=lambda: _document(run.id),
            file_name=f"run-{run.id}.json",
            mime="application/json",
            icon=":material/download:",
            on_click="ignore",
        )
        if not run.state.is_final:
            _cancel(run)


def _document(run_id: int) -> bytes:
    backend = services.backend()
    return orjson.dumps(run_document(backend, backend.runs.get(run_id), with_logs=True))


def _onwards(run: Run) -> None:
    if run.summary.profile_id is not None:
        if st.button("Open profile", type="primary", icon=":material/bar_chart:"):
            state.go(Page.PROFILE, id=run.summary.profile_id)
    elif (
        isinstance(run.spec, TrainSpec)
        and run.spec.plan_id is not None
        and st.button("Open plan", icon=":material/account_tree:")
    ):
        state.go(Page.PLAN, plan=run.spec.plan_id)


def _cancel(run: Run) -> None:
    with st.popover("Cancel", icon=":material/stop_circle:", disabled=run.cancel_requested):
        st.markdown("End this run and all its processes? What it has recorded is kept.")
        if st.button("Cancel the run", type="primary", key="cancel-confirmed"):
            services.backend().runs.cancel(run.id)
            state.notify(f"Run {run.id} is being cancelled")
            st.rerun()


def run_line(run: Run) -> None:
    """State, attempt, plan, node, when: one line."""
    zone = state.zone()
    parts = [f"attempt {run.attempt}"] if run.attempt else []
    parts += [f"**{plain(plan_label(run))}**"]
    parts += [f"on {plain(run.node)}"] if run.node else []
    if run.started_at:
        parts += [f"started {moment(run.started_at, zone)}", took(run)]
    else:
        parts += [f"asked for {moment(run.created_at, zone)}"]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        state_badge(run.state)
        st.markdown(f":gray[{' · '.join(parts)}]")
