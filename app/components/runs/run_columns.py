"""What the table of runs can show of each run, and what it can be sorted by."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st

from app.components.runs.run_words import plan_label, share_done, took
from app.components.runs.state_badge import state_badge
from app.formats import NOTHING, ago, duration, number, percent, plain, rate, shorten
from app.session.links import target
from app.session.state import Page
from backend.runs.history.listing import RunSort
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

NOTE = 60  # characters


@dataclass(frozen=True, slots=True)
class RunColumn:
    """`sort`: what the heading sorts by, None where it does not."""

    title: str
    width: float
    draw: Callable[[Run], object]
    sort: RunSort | None = None


def _name(run: Run) -> None:
    star = "★ " if run.starred else ""
    st.page_link(
        target(Page.RUN),
        label=f"{star}**{run.id}** · {plain(run.name)}",
        query_params={"id": str(run.id)},
    )


def _state(run: Run) -> None:
    state_badge(run.state)
    done = share_done(run)
    if done is not None:
        st.progress(done)


def _text(words: Callable[[Run], str]) -> Callable[[Run], object]:
    return lambda run: st.markdown(words(run))


def _small(words: Callable[[Run], str]) -> Callable[[Run], object]:
    return lambda run: st.markdown(f":small[{plain(words(run) or NOTHING)}]")


def _tags(run: Run) -> object:
    return st.markdown(" ".join(f":blue-badge[{plain(tag)}]" for tag in run.tags) or NOTHING)


def _epochs(run: Run) -> str:
    return str(run.summary.epochs) if isinstance(run.spec, TrainSpec) else NOTHING


NAME = RunColumn("Run", 2.6, _name, RunSort.NAME)
COLUMNS: Mapping[str, RunColumn] = {
    "State": RunColumn("State", 1.5, _state, RunSort.STATE),
    "Plan": RunColumn("Plan", 1.9, _small(plan_label)),
    "Accuracy": RunColumn(
        "Accuracy", 1.1, _text(lambda run: percent(run.summary.accuracy)), RunSort.ACCURACY
    ),
    "To target": RunColumn(
        "To target", 1.1, _text(lambda run: duration(run.summary.seconds_to_target))
    ),
    "Loss": RunColumn("Loss", 0.9, _text(lambda run: number(run.summary.loss))),
    "Throughput": RunColumn(
        "Throughput", 1.3, _text(lambda run: rate(run.summary.samples_per_second))
    ),
    "Epochs": RunColumn("Epochs", 0.8, _text(_epochs)),
    "Took": RunColumn("Took", 1.1, _text(took), RunSort.SECONDS),
    "Node": RunColumn("Node", 1.1, _small(lambda run: run.node or "")),
    "Owner": RunColumn("Owner", 1.0, _small(lambda run: run.owner), RunSort.OWNER),
    "Tags": RunColumn("Tags", 1.5, _tags),
    "Note": RunColumn("Note", 2.0, _small(lambda run: shorten(run.note, NOTE))),
    "Asked for": RunColumn(
        "Asked for",
        1.2,
        lambda run: st.markdown(f":gray[{ago(run.created_at)}]"),
        RunSort.CREATED,
    ),
}
USUAL = ("State", "Plan", "Accuracy", "Took", "Owner", "Asked for")
