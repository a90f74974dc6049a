"""How far a run is, and how long it still takes."""

from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st

from app.components.runs.run_words import share_done
from app.components.shell.layout import tab_title
from app.formats import duration, percent, plain
from backend.runs.history.records import MetricPoint
from backend.runs.remaining import remaining
from backend.runs.run import Run
from backend.runs.states import RunState

RECENT = 50
"""Points of a loss curve that tell the pace."""
PHASES = {
    "load": "loading",
    "train": "training",
    "warm up": "warming up",
    "layers": "timing layers",
}
"""What is done in a phase that ranks report; others are shown by their own words."""


def run_progress(run: Run, losses: Sequence[MetricPoint]) -> None:
    """One line and a bar; nothing for a run that has ended. `losses`: the last `RECENT`."""
    if run.state.is_final:
        return
    found = run.progress
    if done := share_done(run):
        tab_title(run.name, f"run {run.id}", percent(done, 0))
    if run.state is not RunState.RUNNING or run.cancel_requested or found is None:
        st.progress(share_done(run) or 0.0, text=_waiting(run))
        return
    parts = [plain(PHASES.get(found.phase, found.phase))]
    if done:
        parts.append(percent(done, 0))
    left = remaining(run, datetime.now(UTC), losses)
    if left is not None:
        parts.append(f"**{duration(left)}** left")
    st.progress(share_done(run) or 0.0, text=" · ".join(parts))


def _waiting(run: Run) -> str:
    if run.cancel_requested:
        return "Cancelling: the processes are being ended"
    if run.state is RunState.QUEUED:
        return f"Queued: waiting for {'a job' if run.spec.pool else 'a node'}"
    if run.state is RunState.RUNNING:
        return f"Running on {plain(run.node or 'a node')}"
    return f"Starting on {plain(run.node or 'a node')}"
