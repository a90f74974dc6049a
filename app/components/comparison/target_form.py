"""To what the time of compared runs is taken: an accuracy, or a held-out loss."""

from collections.abc import Mapping, Sequence
from math import ceil

import streamlit as st

from app.session.state import Param, bound
from backend.comparison.to_target import Target
from backend.runs.events import ACCURACY, HELD_OUT_LOSS
from backend.runs.history.records import MetricPoint
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

Points = Mapping[int, Sequence[MetricPoint]]


def target_form(runs: Sequence[Run], accuracies: Points, losses: Points) -> Target:
    """At first what all were asked for, else what all reached; a loss where no run has an
    accuracy."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="row-target"):
        metric = _metric(accuracies, losses)
        specs = [run.spec for run in runs if isinstance(run.spec, TrainSpec)]
        if metric == ACCURACY:
            asked = [spec.target_accuracy for spec in specs]
            tops = [max(p.value for p in points) for points in accuracies.values() if points]
            return Target(metric, _accuracy(min(_known(asked) or tops or [0.9])))
        asked = [spec.target_loss for spec in specs]
        least = [min(p.value for p in points) for points in losses.values() if points]
        return Target(metric, _loss(max(_known(asked) or least)))


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _metric(accuracies: Points, losses: Points) -> str:
    """Asked for where the runs have both."""
    told = {ACCURACY: accuracies, HELD_OUT_LOSS: losses}
    known = [name for name, points in told.items() if any(points.values())]
    if len(known) < 2:
        return known[0] if known else ACCURACY
    chosen = st.segmented_control(
        "Time to", known, default=known[0], required=True, **bound(Param.RANK_BY)
    )
    return str(chosen)


def _accuracy(usual: float) -> float:
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


def _loss(usual: float) -> float:
    """Rounded up: the run that it was taken from has it."""
    chosen = st.number_input(
        "Time to held-out loss",
        None,
        None,
        ceil(1000 * usual) / 1000,
        step=0.01,
        format="%.3f",
        **bound(Param.TARGET_LOSS),
        width=200,
    )
    return float(chosen)
