"""A training run in pictures: figures, timelines, where the time went, curves."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.charts.curve import MAX_POINTS, X, curve
from app.charts.curve import points as columns
from app.charts.deviations import waiting
from app.components.run.measured_view import measured_view, time_view
from app.components.run.run_figures import Readings, run_figures
from app.components.shell.layout import card, figures
from app.queries.segments import prediction_of
from backend.runs.events import HELD_OUT_LOSS
from backend.runs.history.records import MetricPoint
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run


def training_view(run: Run) -> None:
    """Draw what there is so far; what is not there yet leaves no hole."""
    runs = services.backend().runs
    losses = runs.metrics.curve(run.id, "loss", MAX_POINTS)
    head = st.container()
    shown = measured_view(run)
    readings = Readings(
        loss_means=runs.metrics.epoch_means(run.id, "loss", 2),
        accuracies=runs.metrics.list(run.id, "accuracy"),
        held_out=runs.metrics.list(run.id, HELD_OUT_LOSS),
        throughputs=runs.metrics.last(run.id, "throughput"),
        waiting=waiting(shown.measured) if shown else None,
        predicted_waiting=waiting(shown.predicted) if shown and shown.predicted else None,
    )
    with head:
        if losses or shown or not run.state.is_final:
            figures(run_figures(run, readings, prediction_of(run)), "run")
    with st.container(key="panels-run"):
        if shown is not None:
            time_view(run, shown)
        _curves(run, losses, readings)


def _curves(run: Run, losses: Sequence[MetricPoint], readings: Readings) -> None:
    accuracies = readings.accuracies
    if not losses:
        return
    with card("Loss", "per minibatch"):
        _curve(losses, "loss")
    if readings.held_out:
        with card("Loss, held out", "after each epoch"):
            target = run.spec.target_loss if isinstance(run.spec, TrainSpec) else None
            _curve(readings.held_out, HELD_OUT_LOSS, target)
    with card("Accuracy", "held out, after each epoch"):
        target = run.spec.target_accuracy if isinstance(run.spec, TrainSpec) else None
        if accuracies:
            _curve(accuracies, "accuracy", target, share=True)
        else:
            st.caption("The first evaluation comes after the first epoch.")


def _curve(
    points: Sequence[MetricPoint], name: str, target: float | None = None, *, share: bool = False
) -> None:
    drawn = columns([point.step for point in points], [point.value for point in points])
    how = curve(len(drawn[X]), name=name, target=target, share=share)
    st.vega_lite_chart(drawn, how, key=f"curve-{name}", alt=f"{name} over the minibatches")
