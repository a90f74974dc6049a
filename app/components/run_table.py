"""Runs as rows: each opens its page."""

from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st

from app.components.grid import Column, grid
from app.components.state_badge import state_badge
from app.formats import NOTHING, ago, duration, percent, plain
from app.naming import plan_name
from app.state import Page
from backend.runs.run import Run
from backend.runs.spec import TrainSpec


def run_table(runs: Sequence[Run]) -> None:
    """Newest first, as the service gives them."""
    grid(
        "runs",
        (
            Column("Run", 2.6, _name),
            Column("State", 1.6, lambda run: state_badge(run.state)),
            Column("Plan", 2.0, lambda run: st.markdown(f":small[{plain(plan_label(run))}]")),
            Column("Accuracy", 1.0, lambda run: st.markdown(percent(run.summary.accuracy))),
            Column("Took", 1.1, lambda run: st.markdown(took(run))),
            Column("Node", 1.1, lambda run: st.markdown(f":small[{plain(run.node or NOTHING)}]")),
            Column("Asked for", 1.1, lambda run: st.markdown(f":gray[{ago(run.created_at)}]")),
        ),
        runs,
    )


def _name(run: Run) -> None:
    st.page_link(
        Page.RUN.value,
        label=f"**{run.id}** · {plain(run.name)}",
        query_params={"id": str(run.id)},
    )


def plan_label(run: Run) -> str:
    """The plan's short form, or what else the run does."""
    if isinstance(run.spec, TrainSpec):
        return plan_name(run.spec.plan)
    return f"profile · microbatch {run.spec.microbatch}"


def took(run: Run) -> str:
    """How long the run worked, so far or in all."""
    if run.started_at is None:
        return NOTHING
    return duration((run.finished_at or datetime.now(UTC)).timestamp() - run.started_at.timestamp())
