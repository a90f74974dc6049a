"""What the table of runs can show of each run, and what it can be sorted by."""

from collections.abc import Mapping

import streamlit as st

from app.components.runs.run_words import plan_label, run_link, share_done, state_badge, took
from app.components.shell.grid import Column, small, text, when
from app.formats import NOTHING, duration, number, percent, plain, rate, shorten
from backend.runs.events import HELD_OUT_LOSS
from backend.runs.history.listing import RunSort
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

NOTE = 60  # characters


def _state(run: Run) -> None:
    state_badge(run.state)
    done = share_done(run)
    if done is not None:
        st.progress(done)


def _tags(run: Run) -> str:
    return " ".join(f":blue-badge[{plain(tag)}]" for tag in run.tags) or NOTHING


def _epochs(run: Run) -> str:
    return str(run.summary.epochs) if isinstance(run.spec, TrainSpec) else NOTHING


def _metrics(run: Run) -> str:
    own = {n: value for n, value in run.summary.metrics.items() if n != HELD_OUT_LOSS}
    return " · ".join(f"{plain(name)} {number(value)}" for name, value in own.items())


NAME: Column[Run] = Column("Run", 2.4, lambda run: run_link(run, "★ " if run.starred else ""))
_ALL: tuple[Column[Run], ...] = (
    Column("State", 1.5, _state),
    small("Plan", 1.9, plan_label),
    text("Accuracy", 1.1, lambda run: percent(run.summary.accuracy)),
    text("To target", 1.1, lambda run: duration(run.summary.seconds_to_target)),
    text("Loss", 0.9, lambda run: number(run.summary.loss)),
    text("Loss, held out", 1.1, lambda run: number(run.summary.metrics.get(HELD_OUT_LOSS))),
    small("Metrics", 2.0, _metrics),
    text("Throughput", 1.3, lambda run: rate(run.summary.samples_per_second)),
    text("Epochs", 0.8, _epochs),
    text("Duration", 1.3, took),
    small("Node", 1.1, lambda run: run.node or ""),
    small("Owner", 1.0, lambda run: run.owner),
    text("Tags", 1.5, _tags),
    small("Note", 2.0, lambda run: shorten(run.note, NOTE)),
    when("Created", 1.2, lambda run: run.created_at),
)
COLUMNS: Mapping[str, Column[Run]] = {column.title: column for column in _ALL}
USUAL = ("State", "Plan", "Accuracy", "Duration", "Owner", "Created")
SORTS: Mapping[str, RunSort] = {
    "Run": RunSort.NAME,
    "State": RunSort.STATE,
    "Accuracy": RunSort.ACCURACY,
    "Duration": RunSort.SECONDS,
    "Owner": RunSort.OWNER,
    "Created": RunSort.CREATED,
}
"""What the headings of these columns sort by."""
