"""The figures of several runs, the best of each column marked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from app.charts.overlay import SERIES
from app.components.runs.run_words import plan_label, run_link, state_badge
from app.components.shell.grid import Column, grid, small, text
from app.formats import duration, number, percent, rate, seconds
from backend.comparison.runs import Reached, best
from backend.runs.run import Run


@dataclass(frozen=True, slots=True)
class RunMetric:
    """A figure of every run; `largest`: whether more is better."""

    title: str
    width: float
    value: Callable[[Run], float | None]
    text: Callable[[float | None], str]
    largest: bool = False


def comparison_summary(
    runs: Sequence[Run], target: float | None, firsts: Mapping[int, Reached | None]
) -> None:
    """A row per run, whose summaries say how it is by now. `firsts`: when each reached the
    `target` accuracy."""
    title = f"To {percent(target, 0)}" if target is not None else "To target"
    measures = (
        RunMetric("Accuracy", 1.0, lambda run: run.summary.accuracy, percent, largest=True),
        RunMetric(title, 1.0, lambda run: _seconds(firsts.get(run.id)), duration),
        RunMetric("Loss", 0.8, lambda run: run.summary.loss, number),
        RunMetric(
            "Throughput", 1.0, lambda run: run.summary.samples_per_second, rate, largest=True
        ),
        RunMetric("Per minibatch", 1.1, lambda run: run.summary.seconds_per_minibatch, seconds),
        RunMetric("Waiting", 0.9, lambda run: run.summary.bubble, percent),
        RunMetric("Took", 1.0, _took, duration),
    )
    colours = {run.id: SERIES[number % len(SERIES)][0] for number, run in enumerate(runs)}
    grid(
        "comparison",
        (
            Column("Run", 2.2, lambda run: _name(run, colours[run.id])),
            Column("State", 1.3, lambda run: state_badge(run.state)),
            small("Plan", 1.5, plan_label),
            *(_column(measure, runs) for measure in measures),
        ),
        runs,
    )


def _name(run: Run, colour: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.html(
            f'<span style="display:inline-block;width:.8rem;height:.8rem;border-radius:2px;'
            f'background:{colour}"></span>',
            width="content",
        )
        run_link(run)


def _column(measure: RunMetric, runs: Sequence[Run]) -> Column[Run]:
    values = [measure.value(run) for run in runs]
    winners = {runs[number].id for number in best(values, largest=measure.largest)}

    def words(run: Run) -> str:
        said = measure.text(measure.value(run))
        return f":green[**{said} ✓**]" if run.id in winners else said

    return text(measure.title, measure.width, words)


def _seconds(first: Reached | None) -> float | None:
    return first.seconds if first else None


def _took(run: Run) -> float | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds()
