"""What the ranks did: the measured timeline above the predicted one, and where time went."""

import streamlit as st

from app import services
from app.charts.attribution import attribution as attribution_chart
from app.charts.frame import CONFIG
from app.components.card import card
from app.components.rank_names import rank_names
from app.components.timeline_view import timeline_view
from app.formats import count, percent, seconds
from backend.pipeline.timeline import Timeline
from backend.prediction.compare import attribution, compare
from backend.runs.run import Run
from backend.runs.spec import TrainSpec


def measured_view(run: Run) -> Timeline | None:
    """The segment (epoch) that is chosen, the newest by default; None before the first."""
    runs = services.backend().runs
    segments = list(runs.segments(run.id))
    if not segments or not isinstance(run.spec, TrainSpec):
        return None
    with card("Measured above predicted", "bars measured, thin bars predicted, label = microbatch"):
        controls = st.container(horizontal=True, vertical_alignment="center")
        with controls:
            segment = _segment(segments, run.id)
        measured = runs.timeline(run.id, "measured", segment)
        if measured is None:
            return None
        predicted = runs.timeline(run.id, "predicted", segment)
        names = rank_names(run.spec.plan)
        timeline_view(f"run-{run.id}", measured, predicted, names, controls)
        if predicted is not None:
            st.caption(_difference(measured, predicted))
    return measured


def time_view(run: Run, measured: Timeline) -> None:
    """Where each rank's time went, over the whole segment."""
    if isinstance(run.spec, TrainSpec):
        rows = list(zip(rank_names(run.spec.plan), attribution(measured), strict=False))
        with card("Where the time went", "of each rank"):
            st.plotly_chart(attribution_chart(rows), key="attribution", config=CONFIG)


def _segment(segments: list[int], run_id: int) -> int:
    """The newest unless another is chosen; a new one does not move a choice."""
    if len(segments) == 1:
        return segments[0]
    newest = -1
    chosen: int = st.selectbox(
        "Epoch",
        [newest, *reversed(segments)],
        format_func=lambda s: (
            f"Newest epoch ({segments[-1] + 1})" if s == newest else f"Epoch {s + 1}"
        ),
        key=f"segment-{run_id}",
        label_visibility="collapsed",
        width=170,
    )
    return segments[-1] if chosen == newest else chosen


def _difference(measured: Timeline, predicted: Timeline) -> str:
    found = compare(measured, predicted)
    error = percent(found.median_share) if found.median_share is not None else "not known"
    whole = f"{seconds(measured.makespan)} measured, {seconds(predicted.makespan)} predicted"
    parts = [f"Median error per action **{error}**", f"the whole epoch {whole}"]
    if found.unmatched:
        parts.append(f"{count(found.unmatched, 'action')} only in one of the two")
    return " · ".join(parts)
