"""Several runs side by side: figures, what differs, curves over one axis."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import streamlit as st

from app import services
from app.charts.overlay import Curve, overlay, rows
from app.components.comparison.run_summary import comparison_summary, run_names
from app.components.comparison.run_timelines import run_timelines
from app.components.comparison.target_form import target_form
from app.components.shell.layout import card
from app.formats import count, plain
from app.session.state import Param, bound
from backend.comparison.runs import (
    CurveAxis,
    Reached,
    differing,
    every,
    positions,
    reached,
    smooth,
    so_far,
    updates_per_epoch,
)
from backend.errors import NotFound
from backend.runs.events import ACCURACY, HELD_OUT_LOSS
from backend.runs.history.records import MetricPoint
from backend.runs.run import Run
from backend.whole import is_whole

POINTS = 1000
SHARES = (ACCURACY,)


def run_comparison(runs: Sequence[Run]) -> None:
    """Everything about runs that are there, one of them at least."""
    service = services.backend().runs
    accuracies = {run.id: service.metrics.list(run.id, ACCURACY) for run in runs}
    names = run_names(runs)
    with card("Summary", "the best of each column is marked"):
        losses = {run.id: service.metrics.list(run.id, HELD_OUT_LOSS) for run in runs}
        target = target_form(runs, accuracies, losses)
        is_share = target.metric == ACCURACY
        points = accuracies if is_share else losses
        firsts: dict[int, Reached | None] = {
            run.id: reached(run, points[run.id], target.value, largest=is_share) for run in runs
        }
        now = [replace(run, summary=so_far(run, _newest(run, accuracies[run.id]))) for run in runs]
        comparison_summary(now, names, target, firsts)
    with card("Metrics"):
        _metrics(runs, names, accuracies)
    run_timelines(runs, names)
    with card("Parameters"):
        _parameters(runs, names)


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


def _metrics(
    runs: Sequence[Run],
    names: Mapping[int, str],
    accuracies: Mapping[int, Sequence[MetricPoint]],
) -> None:
    service = services.backend().runs
    told = sorted({name for run in runs for name in service.metrics.names(run.id)})
    if not told:
        st.caption("None of these runs has reported a metric yet.")
        return
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="medium", key="row-metrics"
    ):
        name = st.segmented_control(
            "Metric",
            told,
            default="loss" if "loss" in told else told[0],
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
            names[run.id],
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
    name: str,
    run: Run,
    points: Sequence[MetricPoint],
    axis: CurveAxis,
    weight: float,
    ends: Sequence[MetricPoint],
) -> Curve:
    values = [point.value for point in points]
    x = positions(run, points, axis, updates_per_epoch(ends))
    return Curve(name, x, values, smooth(values, weight))


def _title(axis: CurveAxis) -> str:
    return "seconds since the start" if axis is CurveAxis.SECONDS else axis.value


def _parameters(runs: Sequence[Run], names: Mapping[int, str]) -> None:
    only = st.toggle("Only what differs", True, **bound(Param.DIFFERING))
    shown = named(differing(runs) if only else every(runs))
    if not shown:
        st.caption("These runs have the same parameters.")
        return
    columns: dict[str, list[str]] = {"Parameter": [f"`{name}`" for name in shown]}
    for place, run in enumerate(runs):
        columns[plain(names[run.id])] = [plain(values[place]) for values in shown.values()]
    st.table(columns, hide_index=True)


def named(shown: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The same with the names of what parameters refer to by a number: "plan_id" -> "plan"."""
    found = {}
    for name, values in shown.items():
        look_up = REFERRED.get(name)
        title = name.removesuffix("_id") if look_up else name
        found[title] = tuple(_called(value, look_up) for value in values) if look_up else values
    return found


def _called(number: str, look_up: Callable[[int], str]) -> str:
    """By its name; the number alone where there is nothing of it left to see."""
    if not is_whole(number):
        return number
    with suppress(NotFound):
        return look_up(int(number))
    return number


def _definition(number: int) -> str:
    found = services.backend().definitions.get(number)
    return f"{found.name}@{found.version}"


def _plan(number: int) -> str:
    return f"{services.backend().plans.get(number).name} · plan {number}"


def _run(number: int) -> str:
    return f"{services.backend().runs.get(number).name} · run {number}"


REFERRED: Mapping[str, Callable[[int], str]] = {
    "definition_id": _definition,
    "weights_id": _definition,
    "plan_id": _plan,
    "weights_run": _run,
}
"""The parameters that are numbers of something with a name."""
