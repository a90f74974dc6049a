"""The figures of several runs, the best of each column marked among runs that can be compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from app.charts.overlay import SERIES
from app.components.runs.run_words import plan_label, state_badge
from app.components.shell.grid import Column, grid, small, text
from app.differences import target_words
from app.formats import SPACE, duration, metric_value, number, percent, plain, rate, seconds
from app.session.links import page_link
from app.session.state import Page
from backend.comparison.alike import Yardstick, best_alike, differ_in
from backend.comparison.runs import Reached
from backend.comparison.to_target import Target
from backend.runs.events import ACCURACY, HELD_OUT_LOSS, PERPLEXITY
from backend.runs.request.data_forms import FORMS
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

LETTER = 0.115
"""Of a column's width, what a letter of its heading's longest word takes."""
MOST = 4
"""Columns of the summary for metrics of the definitions."""
APART = (
    "A best is marked only among runs that can be compared: for losses and metrics those of the "
    "same data and model, for durations those that succeeded with the same epochs and targets."
)


@dataclass(frozen=True, slots=True)
class RunMetric:
    """A figure of every run; `largest`: whether more is better, None where nobody knows. One is
    the best among those with the same `yardstick`."""

    title: str
    width: float
    value: Callable[[Run], float | None]
    text: Callable[[float | None], str]
    largest: bool | None = False
    yardstick: Yardstick = Yardstick.DATA


def run_names(runs: Sequence[Run]) -> dict[int, str]:
    """How each is called: by its name, with its number where several have that name."""
    found = [run.name for run in runs]
    return {
        run.id: run.name if found.count(run.name) == 1 else f"{run.name} · run {run.id}"
        for run in runs
    }


def comparison_summary(
    runs: Sequence[Run],
    names: Mapping[int, str],
    target: Target,
    firsts: Mapping[int, Reached | None],
) -> None:
    """A row per run, whose summaries say how it is by now. `firsts`: when each reached the
    `target`."""
    is_share = target.metric == ACCURACY
    title = f"To {percent(target.value, 0) if is_share else target_words(target)}"
    speed, update = Yardstick.DATA, Yardstick.UPDATE
    measures = (
        RunMetric("Accuracy", 1.0, lambda run: run.summary.accuracy, percent, largest=True),
        RunMetric(title, 1.0, lambda run: _seconds(firsts.get(run.id)), duration),
        RunMetric("Loss", 1.1, lambda run: run.summary.loss, number, yardstick=Yardstick.METRIC),
        *_own(runs),
        RunMetric("Throughput", 1.2, lambda run: run.summary.samples_per_second, rate, True, speed),
        RunMetric(
            "Per minibatch",
            1.1,
            lambda run: run.summary.seconds_per_minibatch,
            seconds,
            yardstick=update,
        ),
        RunMetric("Waiting", 0.9, lambda run: run.summary.bubble, percent),
        RunMetric("Duration", 1.0, _took, duration, yardstick=Yardstick.WORK),
    )
    data_differ = differ_in(runs, Yardstick.DATA)
    looks = {run.id: SERIES[place % len(SERIES)] for place, run in enumerate(runs)}
    grid(
        "comparison",
        (
            Column("Run", 2.2, lambda run: _name(run, names[run.id], looks[run.id])),
            Column("State", 1.6, lambda run: state_badge(run.state)),
            small("Plan", 1.5, plan_label),
            *((small("Data", 1.4, data_name),) if data_differ else ()),
            *(_column(measure, runs) for measure in measures),
        ),
        runs,
    )
    if any(differ_in(runs, yardstick) for yardstick in Yardstick):
        st.caption(APART)


def data_name(run: Run) -> str:
    """What a run learns from, in a few words."""
    if not isinstance(run.spec, TrainSpec):
        return ""
    data = run.spec.data
    form = FORMS[data.name].title if data.name in FORMS else "the model's own"
    emulated = " (emulated)" if run.spec.emulate else ""
    return (f"{form}: {data.path}" if data.path else form) + emulated


def _own(runs: Sequence[Run]) -> list[RunMetric]:
    """What the held-out samples and the definitions say beside accuracy and loss."""
    names = sorted({name for run in runs for name in run.summary.metrics})
    return [
        RunMetric(
            plain(name[:1].upper() + name[1:]),
            1.0,
            partial(_metric, name),
            partial(metric_value, name),
            False if name in (HELD_OUT_LOSS, PERPLEXITY) else None,
            Yardstick.METRIC,
        )
        for name in names[:MOST]
    ]


def _metric(name: str, run: Run) -> float | None:
    return run.summary.metrics.get(name)


def _name(run: Run, name: str, look: tuple[str, Sequence[int]]) -> None:
    colour, (on, off) = look
    line = f"repeating-linear-gradient(90deg,{colour} 0 {on}px,transparent 0 {on + off}px)"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.html(
            f'<span style="display:inline-block;width:.8rem;height:.8rem;border-radius:2px;'
            f'background:{line if off else colour}"></span>',
            width="content",
        )
        page_link(Page.RUN, f"**{plain(name)}**", id=run.id)


def _column(measure: RunMetric, runs: Sequence[Run]) -> Column[Run]:
    values = [measure.value(run) for run in runs]
    largest = measure.largest
    places = set() if largest is None else _won(measure, runs, values, largest=largest)
    winners = {runs[place].id for place in places}

    def words(run: Run) -> str:
        said = measure.text(measure.value(run))
        return f":green[**{said}{SPACE}✓**]" if run.id in winners else said

    longest = max(map(len, measure.title.split()))
    return text(measure.title, max(measure.width, LETTER * longest), words)


def _won(
    measure: RunMetric, runs: Sequence[Run], values: Sequence[float | None], *, largest: bool
) -> set[int]:
    return best_alike(runs, values, measure.yardstick, largest=largest)


def _seconds(first: Reached | None) -> float | None:
    return first.seconds if first else None


def _took(run: Run) -> float | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds()
