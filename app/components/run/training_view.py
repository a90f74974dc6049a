"""A training run in pictures: figures, timelines, where the time went, curves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import streamlit as st

from app import services
from app.charts.curve import LINES, X, Y, curve
from app.charts.deviations import waiting
from app.components.run.last_run_view import last_run_view
from app.components.run.measured_view import measured_view, time_view
from app.components.run.other_links_view import other_links_view
from app.components.run.run_figures import Readings, run_figures
from app.components.run.shared_cores_view import shared_cores_view
from app.components.run.straggler_view import straggler_view
from app.components.shell.layout import card, figures
from app.formats import plain
from app.naming import attempt_plan
from app.queries.segments import expected_of, predicted_energy
from backend.planning.sites import OTHER_LABELS
from backend.runs.events import (
    ACCURACY,
    ENERGY,
    HELD_OUT_LOSS,
    LOSS,
    PERPLEXITY,
    SENT,
    SENT_PLAIN,
    SITES_SENT,
    SITES_SPREAD,
    SITES_SUMS,
    SUMS_PLAIN,
    SUMS_SENT,
    of_stage,
    stage_of,
)
from backend.runs.history.records import StoredAttempt
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

POINTS = 500  # of one curve
BESIDE = {
    SUMS_SENT: {"sent": SUMS_SENT, "without a codec": SUMS_PLAIN},
    SITES_SENT: {"sent": SITES_SENT, "as sums of gradients": SITES_SUMS},
}
"""Metrics that are drawn in one chart with what they are compared with: the lines of each."""
COMMON = (LOSS, "throughput", SENT, SENT_PLAIN, SUMS_PLAIN, SITES_SUMS)
OF_HEADS = (LOSS, HELD_OUT_LOSS, ACCURACY)
LAST = "last stage"
OWN = "of the model definition"
CAPTIONS = {
    PERPLEXITY: "held out, at each evaluation",
    ENERGY: "of the hosts' processors, whatever ran on them, and of the ranks' GPUs",
    SUMS_SENT: "of all replicas, in each epoch",
    SITES_SENT: "of all ranks, in each epoch",
    SITES_SPREAD: "of weights, as a share of their mean, at the end of each epoch",
}


def training_view(run: Run) -> None:
    """Draw what there is so far; what is not there yet leaves no hole. Timelines and figures are
    of the plan that the newest attempt goes by."""
    runs = services.backend().runs
    attempts = runs.attempts(run.id)
    marks = changes(attempts)
    run = as_carried(run, attempts)
    has_losses = bool(runs.metrics.last(run.id, "loss"))
    head = st.container()
    shown = measured_view(run)
    joules = runs.metrics.last(run.id, ENERGY)
    readings = Readings(
        loss_means=runs.metrics.epoch_means(run.id, "loss", 2),
        accuracies=runs.metrics.list(run.id, "accuracy"),
        held_out=runs.metrics.list(run.id, HELD_OUT_LOSS),
        throughputs=runs.metrics.last(run.id, "throughput"),
        sent=(runs.metrics.last(run.id, SENT), runs.metrics.last(run.id, SENT_PLAIN)),
        joules=joules,
        predicted_energy=predicted_energy(run) if joules else None,
        waiting=waiting(shown.measured) if shown else None,
        predicted_waiting=waiting(shown.predicted) if shown and shown.predicted else None,
    )
    with head:
        if has_losses or shown or not run.state.is_final:
            found = expected_of(run)
            shared_cores_view(run, found)
            other_links_view(found)
            figures(run_figures(run, readings, found.prediction, found.at_share), "run")
            straggler_view(run)
            last_run_view(run)
    with st.container(key="panels-run"):
        if shown is not None:
            time_view(run, shown)
        if has_losses and isinstance(run.spec, TrainSpec):
            _curves(run.id, run.spec, readings, marks)


def as_carried(run: Run, attempts: Sequence[StoredAttempt]) -> Run:
    """The run as its newest attempt carries it: by a fallback, where it lost nodes."""
    plan = attempts[-1].plan if attempts else None
    if plan is None or not isinstance(run.spec, TrainSpec):
        return run
    return replace(run, spec=replace(run.spec, plan=plan))


def changes(attempts: Sequence[StoredAttempt]) -> dict[int, str]:
    """By update from which another plan than before was gone by: which one."""
    found = {}
    for before, after in pairwise(attempts):
        if before.plan != after.plan:
            found[after.step or 0] = attempt_plan(after) or "its own plan again"
    return found


def _curves(run_id: int, spec: TrainSpec, readings: Readings, marks: Mapping[int, str]) -> None:
    names = services.backend().runs.metrics.names(run_id)
    heads = [found for name in names if (found := stage_of(name)) and found[0] in OF_HEADS]
    stages = sorted({stage for _, stage in heads})
    with card("Loss", "per minibatch"):
        _curve(run_id, LOSS, marks=marks, stages=stages)
    if readings.held_out:
        with card("Loss, held out", "at each evaluation"):
            _curve(run_id, HELD_OUT_LOSS, spec.target_loss, stages=stages)
    if readings.accuracies:
        with card("Accuracy", "held out, at each evaluation"):
            _curve(run_id, ACCURACY, spec.target_accuracy, share=True, stages=stages)
    elif not readings.held_out:
        with card("Accuracy", "held out"):
            st.caption(_first_evaluation(spec))
    for name in names:
        if name not in (*COMMON, ACCURACY, HELD_OUT_LOSS) and stage_of(name) not in heads:
            with card(plain(name[:1].upper() + name[1:]), CAPTIONS.get(name, OWN)):
                _curve(run_id, name, share=name == SITES_SPREAD, beside=BESIDE.get(name))
                if name == SITES_SPREAD:
                    st.caption(plain(OTHER_LABELS))


def _first_evaluation(spec: TrainSpec) -> str:
    when = f"{spec.evaluate} updates" if spec.evaluate else "the first epoch"
    return f"The first evaluation comes after {when}."


def _curve(
    run_id: int,
    name: str,
    target: float | None = None,
    *,
    share: bool = False,
    marks: Mapping[int, str] | None = None,
    stages: Sequence[int] = (),
    beside: Mapping[str, str] | None = None,
) -> None:
    """Where `stages` have heads of their own, a line for each and one for the last stage; likewise
    for the metrics `beside` it, which has the name of each line."""
    own = {f"stage {stage}": of_stage(name, stage) for stage in stages} | {LAST: name}
    names = beside or own
    read = services.backend().runs.metrics.curve
    points = [(line, p) for line, each in names.items() for p in read(run_id, each, POINTS)]
    drawn = {X: [point.step for _, point in points], Y: [point.value for _, point in points]}
    lines = [*names] if len(names) > 1 else []
    if lines:
        drawn |= {LINES: [line for line, _ in points]}
    how = curve(
        len(points),
        name=name,
        target=target,
        share=share,
        marks=marks,
        lines=lines,
        values=[point.value for _, point in points],
    )
    st.vega_lite_chart(drawn, how, key=f"curve-{name}", alt=f"{name} over the minibatches")
