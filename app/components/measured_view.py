"""What the ranks did: the measured timeline above the predicted one, and where time went."""

import time
from dataclasses import dataclass

import streamlit as st

from app import services
from app.charts.attribution import attribution as attribution_chart
from app.charts.frame import CONFIG
from app.components.card import card
from app.components.timeline_view import timeline_view
from app.formats import count, percent, seconds
from app.naming import rank_names
from app.predictions import predicted_beside
from backend.pipeline.timeline import Timeline
from backend.prediction.compare import attribution, compare
from backend.runs.run import Run
from backend.runs.spec import TrainSpec

ALT = "Share of each rank's time by what it was spent on"
NEWEST = -1
STEADY = 10.0


@dataclass(frozen=True, slots=True)
class Shown:
    """The timelines of the segment that is shown."""

    measured: Timeline
    predicted: Timeline | None


def measured_view(run: Run) -> Shown | None:
    """The segment (epoch) that is chosen, the newest by default; None before the first."""
    runs = services.backend().runs
    segments = list(runs.segments(run.id))
    if not segments or not isinstance(run.spec, TrainSpec):
        return None
    with card("Measured above predicted", "bars measured, thin bars predicted, label = microbatch"):
        controls = st.container(horizontal=True, vertical_alignment="center")
        with controls:
            segment = _segment(segments, run)
        measured = runs.timeline(run.id, "measured", segment)
        if measured is None:
            return None
        predicted = predicted_beside(run, segment, measured)
        names = rank_names(run.spec.plan)
        timeline_view(f"run-{run.id}", measured, predicted, names, controls)
        if predicted is not None:
            st.caption(_difference(segment, measured, predicted))
    return Shown(measured, predicted)


def time_view(run: Run, measured: Timeline) -> None:
    """Where each rank's time went, over the whole segment."""
    if isinstance(run.spec, TrainSpec):
        rows = list(zip(rank_names(run.spec.plan), attribution(measured), strict=False))
        with card("Where the time went", "of each rank"):
            st.plotly_chart(attribution_chart(rows), key="attribution", config=CONFIG, alt=ALT)


def _segment(segments: list[int], run: Run) -> int:
    """The newest unless another is chosen; a new one does not move a choice."""
    if len(segments) == 1:
        return segments[0]
    newest = segments[-1] if run.state.is_final else _steady(segments[-1], run.id)
    chosen: int = st.selectbox(
        "Epoch",
        [NEWEST, *reversed(segments)],
        format_func=lambda s: "Newest epoch" if s == NEWEST else f"Epoch {s + 1}",
        key=f"segment-{run.id}",
        label_visibility="collapsed",
        width=170,
    )
    return newest if chosen == NEWEST else chosen


def _steady(newest: int, run_id: int) -> int:
    key = f"segment-shown-{run_id}"
    st.session_state[key] = steady(newest, st.session_state.get(key), time.monotonic())
    return int(st.session_state[key][0])


def steady(newest: int, before: tuple[int, float] | None, now: float) -> tuple[int, float]:
    """Which segment to show and since when: the newest, but each for `STEADY` seconds at
    least. Short epochs would follow each other faster than anyone can read them."""
    if before is not None and (before[0] == newest or now - before[1] < STEADY):
        return before
    return newest, now


def _difference(segment: int, measured: Timeline, predicted: Timeline) -> str:
    found = compare(measured, predicted)
    error = percent(found.median_share) if found.median_share is not None else "not known"
    whole = f"{seconds(measured.makespan)} measured, {seconds(predicted.makespan)} predicted"
    parts = [f"Median error per action **{error}**", f"epoch {segment + 1} as a whole {whole}"]
    if found.unmatched:
        parts.append(f"{count(found.unmatched, 'action')} only in one of the two")
    return " · ".join(parts)
