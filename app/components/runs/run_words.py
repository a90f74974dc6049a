"""A run in a few words: its state, what it does, how long it took, how far it is."""

from datetime import UTC, datetime
from typing import Literal

import streamlit as st

from app.formats import NOTHING, duration, plain
from app.naming import plan_name
from app.session.links import page_link
from app.session.state import Page
from backend.runs.request.spec import ImportedSpec, TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState

LOOK: dict[RunState, tuple[str, Literal["gray", "blue", "green", "red", "orange"]]] = {
    RunState.QUEUED: ("schedule", "gray"),
    RunState.STARTING: ("progress_activity", "blue"),
    RunState.RUNNING: ("play_circle", "blue"),
    RunState.SUCCEEDED: ("check_circle", "green"),
    RunState.FAILED: ("error", "red"),
    RunState.CANCELLED: ("cancel", "orange"),
}


def state_badge(state: RunState) -> None:
    """Icon, word and colour: none of them alone carries the meaning."""
    icon, colour = LOOK[state]
    st.badge(state.value, icon=f":material/{icon}:", color=colour)


def run_link(run: Run, mark: str = "") -> None:
    """Number and name, as a link to the run's page, behind a `mark`."""
    page_link(Page.RUN, f"{mark}**{run.id}** · {plain(run.name)}", id=run.id)


def plan_label(run: Run) -> str:
    """The plan's short form, or what else the run does."""
    if isinstance(run.spec, TrainSpec):
        emulated = f" · emulated at {run.spec.emulate:g}" if run.spec.emulate else ""
        return plan_name(run.spec.plan) + emulated
    if isinstance(run.spec, ImportedSpec):
        return f"imported from {run.spec.tracker}"
    return f"profile · microbatch {run.spec.microbatch}"


def took(run: Run) -> str:
    """How long the run worked, so far or in all."""
    if run.started_at is None:
        return NOTHING
    return duration((run.finished_at or datetime.now(UTC)).timestamp() - run.started_at.timestamp())


def share_done(run: Run) -> float | None:
    """How much of the present phase is done, 0 to 1; None where nobody knows."""
    if run.progress is None or run.state.is_final or not run.progress.total:
        return None
    return min(1.0, run.progress.done / run.progress.total)
