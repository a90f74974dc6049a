"""A training run in pictures: figures, timelines, where the time went, curves."""

import streamlit as st

from app import services
from app.charts.curve import X, Y, curve
from app.charts.deviations import waiting
from app.components.run.measured_view import measured_view, time_view
from app.components.run.run_figures import Readings, run_figures
from app.components.shell.layout import card, figures
from app.queries.segments import prediction_of
from backend.runs.events import HELD_OUT_LOSS
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

POINTS = 500  # of one curve


def training_view(run: Run) -> None:
    """Draw what there is so far; what is not there yet leaves no hole."""
    runs = services.backend().runs
    has_losses = bool(runs.metrics.last(run.id, "loss"))
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
        if has_losses or shown or not run.state.is_final:
            figures(run_figures(run, readings, prediction_of(run)), "run")
    with st.container(key="panels-run"):
        if shown is not None:
            time_view(run, shown)
        if has_losses and isinstance(run.spec, TrainSpec):
            _curves(run.id, run.spec, readings)


def _curves(run_id: int, spec: TrainSpec, readings: Readings) -> None:
    with card("Loss", "per minibatch"):
        _curve(run_id, "loss")
    if readings.held_out:
        with card("Loss, held out", "after each epoch"):
            _curve(run_id, HELD_OUT_LOSS, spec.target_loss)
    with card("Accuracy", "held out, after each epoch"):
        if readings.accuracies:
            _curve(run_id, "accuracy", spec.target_accuracy, share=True)
        else:
            st.caption("The first evaluation comes after the first epoch.")


def _curve(run_id: int, name: str, target: float | None = None, *, share: bool = False) -> None:
    points = services.backend().runs.metrics.curve(run_id, name, POINTS)
    drawn = {X: [point.step for point in points], Y: [point.value for point in points]}
    how = curve(len(points), name=name, target=target, share=share)
    st.vega_lite_chart(drawn, how, key=f"curve-{name}", alt=f"{name} over the minibatches")
