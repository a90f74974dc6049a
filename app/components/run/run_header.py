"""What run this is, who works on it, and what can be done with it."""

import streamlit as st

from app import services
from app.components.run.run_actions import run_actions
from app.components.runs.run_words import plan_label, state_badge, took
from app.components.shell.allowed import why_not
from app.components.shell.confirm import confirm
from app.components.shell.layout import page_header
from app.formats import moment, plain
from app.session import state
from app.session.links import page_link
from app.session.state import Page
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run


def run_header(run: Run) -> None:
    """Title and actions; the changing part is `run_line`."""
    with page_header(f"{plain(run.name)} · run {run.id}"):
        _onwards(run)
        run_actions(run)
        if not run.state.is_final:
            _cancel(run)


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
    def cancel() -> None:
        services.backend().runs.cancel(run.id)
        state.done(f"Run {run.id} is being cancelled")

    confirm(
        "Cancel",
        "stop_circle",
        "End this run and all its processes? What it has recorded is kept.",
        "Cancel the run",
        cancel,
        key="cancel",
        barred="The run is being cancelled." if run.cancel_requested else why_not(run.project_id),
    )


def run_line(run: Run) -> None:
    """State, attempt, plan, node, when: one line."""
    zone = state.zone()
    parts = [f"attempt {run.attempt}"] if run.attempt else []
    parts += [f"**{plain(plan_label(run))}**"]
    parts += [f"on {plain(run.node)}"] if run.node else []
    if run.started_at:
        parts += [f"started {moment(run.started_at, zone)}", took(run)]
    else:
        parts += [f"submitted {moment(run.created_at, zone)}"]
    parts += [f"by {plain(run.owner)}"] if run.owner else []
    parts += [f"sandbox: {run.sandbox}"] if run.sandbox else []
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        state_badge(run.state)
        for tag in run.tags:
            st.badge(plain(tag), icon=":material/sell:", color="blue")
        st.caption(" · ".join(parts))
        if run.origin_id is not None:
            page_link(Page.RUN, f"from run {run.origin_id}", id=run.origin_id)
    if run.note:
        st.caption(plain(run.note))
