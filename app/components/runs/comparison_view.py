"""Several runs side by side: figures, what differs, curves over one axis."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from app import services
from app.charts.overlay import SERIES, Curve, overlay, rows
from app.components.runs.run_words import plan_label, run_link, state_badge
from app.components.shell.grid import Column, grid, small, text
from app.components.shell.layout import card
from app.formats import count, duration, number, percent, plain, rate, seconds
from app.session.state import Param, bound
from backend.comparison.runs import (
    CurveAxis,
    Reached,
    best,
    differing,
    every,
    positions,
    reached,
    smooth,
    so_far,
    updates_per_epoch,
)
from backend.runs.events import HELD_OUT_LOSS, PERPLEXITY
from backend.runs.history.records import MetricPoint
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

POINTS = 1000
SHARES = ("accuracy",)
MOST = 4
"""Columns of the summary for metrics of the definitions."""


def comparison_view(runs: Sequence[Run]) -> None:
    """Everything about runs that are there, one of them at least."""
    accuracies = {run.id: services.backend().runs.metrics.list(run.id, "accuracy") for run in runs}
    with card("Summary", "the best of each column is marked"):
        target = _target(runs, accuracies)
        firsts: dict[int, Reached | None] = {
            run.id: reached(run, accuracies[run.id], target) for run in runs
        }
        now = [replace(run, summary=so_far(run, _newest(run, accuracies[run.id]))) for run in runs]
        comparison_summary(now, target, firsts)
    with card("Metrics"):
        _metrics(runs, accuracies)
    with card("Parameters"):
        _parameters(runs)


def _newest(run: Run, accuracies: Sequence[MetricPoint]) -> dict[str, float]:
    """The newest of its metrics, while it works: the loss as the mean of its epoch."""
    if run.state.is_final:
        return {}
    runs = services.backend().runs
    others = [name for name in runs.metrics.names(run.id) if name not in ("accuracy", "loss")]
    found = {"accuracy": accuracies} | {name: runs.metrics.last(run.id, name) for name in others}
    newest = {name: points[-1].value for name, points in found.items() if points}
    means = runs.metrics.epoch_means(run.id, "loss")
    return newest | ({"loss": means[0]} if means else {})


def label(run: Run) -> str:
    """As the legend has it: "7 · vgg_digits"."""
    return f"{run.id} · {run.name}"


def _target(runs: Sequence[Run], accuracies: Mapping[int, Sequence[MetricPoint]]) -> float:
    """The accuracy to which the time is taken: what all were asked for, else what all reached."""
    asked = [r.spec.target_accuracy for r in runs if isinstance(r.spec, TrainSpec)]
    tops = [max(p.value for p in points) for points in accuracies.values() if points]
    usual = min([a for a in asked if a is not None] or tops or [0.9])
    chosen = st.number_input(
        "Time to accuracy, %",
        0.0,
        100.0,
        float(int(1000 * usual) / 10),
        step=0.5,
        format="%.1f",
        **bound(Param.TARGET),
        width=200,
    )
    return float(chosen) / 100


def _metrics(runs: Sequence[Run], accuracies: Mapping[int, Sequence[MetricPoint]]) -> None:
    service = services.backend().runs
    names = sorted({name for run in runs for name in service.metrics.names(run.id)})
    if not names:
        st.caption("None of these runs has reported a metric yet.")
        return
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="medium", key="row-metrics"
    ):
        name = st.segmented_control(
            "Metric",
            names,
            default="loss" if "loss" in names else names[0],
            required=True,
            **bound(Param.METRIC),
        )
        axis = st.segmented_control(
            "Over",
            [axis.value for axis in CurveAxis],
            default=CurveAxis.UPDATES.value,
            required=True,
            **bound(Param.AXIS),
        )
        weight = st.slider("Smoothing", 0.0, 0.99, 0.0, 0.01, width=200, **bound(Param.SMOOTHING))
        log = st.toggle("Logarithmic", **bound(Param.LOG))
    lines = [
        _line(
            run,
            service.metrics.curve(run.id, str(name), POINTS),
            CurveAxis(axis),
            weight,
            accuracies[run.id],
        )
        for run in runs
    ]
    how = overlay(
        lines,
        axis=_title(CurveAxis(axis)),
        name=str(name),
        share=name in SHARES,
        raw=weight > 0,
        log=log,
    )
    alt = f"{name} of {count(len(runs), 'run')} over {axis}"
    st.vega_lite_chart(rows(lines), how, key=f"overlay-{name}-{axis}", alt=alt)


def _line(
    run: Run,
    points: Sequence[MetricPoint],
    axis: CurveAxis,
    weight: float,
    ends: Sequence[MetricPoint],
) -> Curve:
    values = [point.value for point in points]
    x = positions(run, points, axis, updates_per_epoch(ends))
    return Curve(label(run), x, values, smooth(values, weight))


def _title(axis: CurveAxis) -> str:
    return "seconds since the start" if axis is CurveAxis.SECONDS else axis.value


def _parameters(runs: Sequence[Run]) -> None:
    only = st.toggle("Only what differs", True, **bound(Param.DIFFERING))
    shown = differing(runs) if only else every(runs)
    if not shown:
        st.caption("These runs have the same parameters.")
        return
    columns: dict[str, list[str]] = {"Parameter": [f"`{name}`" for name in shown]}
    for place, run in enumerate(runs):
        columns[plain(label(run))] = [plain(values[place]) for values in shown.values()]
    st.table(columns, hide_index=True)


@dataclass(frozen=True, slots=True)
class RunMetric:
    """A figure of every run; `largest`: whether more is better, None where nobody knows."""

    title: str
    width: float
    value: Callable[[Run], float | None]
    text: Callable[[float | None], str]
    largest: bool | None = False


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
        *_own(runs),
        RunMetric(
            "Throughput", 1.0, lambda run: run.summary.samples_per_second, rate, largest=True
        ),
        RunMetric("Per minibatch", 1.1, lambda run: run.summary.seconds_per_minibatch, seconds),
        RunMetric("Waiting", 0.9, lambda run: run.summary.bubble, percent),
        RunMetric("Duration", 1.0, _took, duration),
    )
    colours = {run.id: SERIES[place % len(SERIES)][0] for place, run in enumerate(runs)}
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


def _own(runs: Sequence[Run]) -> list[RunMetric]:
    """What the held-out samples and the definitions say beside accuracy and loss."""
    names = sorted({name for run in runs for name in run.summary.metrics})
    return [
        RunMetric(
            plain(name[:1].upper() + name[1:]),
            1.0,
            partial(_metric, name),
            number,
            largest=False if name in (HELD_OUT_LOSS, PERPLEXITY) else None,
        )
        for name in names[:MOST]
    ]


def _metric(name: str, run: Run) -> float | None:
    return run.summary.metrics.get(name)


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
    places = set() if measure.largest is None else best(values, largest=measure.largest)
    winners = {runs[place].id for place in places}

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
