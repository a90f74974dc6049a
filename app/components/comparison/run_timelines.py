"""What the ranks of several runs did, measured, below each other on one time axis."""

from collections.abc import Iterator, Mapping, Sequence

import streamlit as st

from app import services
from app.charts.bars import Bars
from app.charts.canvas import canvas_bytes, opening, row_names
from app.components.runs.run_words import plan_label
from app.components.shell.layout import card
from app.components.timeline.timeline_view import timeline_canvas
from app.formats import count, plain, seconds
from app.naming import rank_names
from app.queries.segments import bars_of_run
from app.session import state
from app.session.state import Param
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

MOST, TALL = 4, 260
"""Runs below each other, and pixels of one."""
ALT = "When each rank computed, sent and waited in "
KEY = "compared-epoch"


def run_timelines(runs: Sequence[Run], names: Mapping[int, str]) -> None:
    """One per run that has any, of the same epoch; nothing where none has."""
    spans = services.backend().runs.spans
    segments = {run.id: list(spans.segments(run.id)) for run in runs}
    if not any(segments.values()):
        return
    with card("Timelines", "measured, one time axis; zoom or move one and all follow"):
        epoch = _epoch(list(filter(None, segments.values())))
        without = [run for run in runs if epoch not in segments[run.id]]
        having = [run for run in runs if epoch in segments[run.id]]
        found = list(_measured(having[:MOST], segments, epoch))
        extent = max((bars.makespan for _, _, bars in found), default=0.0)
        for number, (run, spec, bars) in enumerate(found):
            data = canvas_bytes(
                bars,
                names=row_names(rank_names(spec.plan), bars),
                alt=ALT + names[run.id],
                param=Param.WINDOW.value,
                group="runs",
                first=opening(found[0][2]),
                extent=extent,
                tall=TALL,
                title=f"{names[run.id]} · {plan_label(run)}: {_told(bars)}",
                follows=number > 0,
            )
            timeline_canvas(f"run-timeline-{run.id}", data)
        if without:
            named = ", ".join(names[run.id] for run in without)
            st.caption(plain(f"No timeline of epoch {epoch + 1}: {named}."))
        if len(having) > MOST:
            st.caption(f"Timelines of the first {MOST} of {count(len(having), 'run')}.")


def _epoch(segments: Sequence[Sequence[int]]) -> int:
    """That of the URL, else the newest that all have, else the newest that one has."""
    known = sorted(set().union(*segments))
    common = set(known).intersection(*segments)
    usual = max(common or known)
    named = (state.number(Param.EPOCH) or 0) - 1
    if len(known) == 1:
        return usual
    st.session_state[KEY] = named if named in known else usual
    chosen: int = st.selectbox(
        "Epoch",
        known[::-1],
        format_func=lambda segment: f"Epoch {segment + 1}",
        key=KEY,
        label_visibility="collapsed",
        width=170,
        on_change=lambda: state.put(Param.EPOCH, st.session_state[KEY] + 1),
    )
    return chosen


def _measured(
    runs: Sequence[Run], segments: Mapping[int, Sequence[int]], epoch: int
) -> Iterator[tuple[Run, TrainSpec, Bars]]:
    for run in runs:
        closed = run.state.is_final or epoch < segments[run.id][-1]
        bars = bars_of_run(run, "measured", epoch, closed=closed)
        if bars is not None and isinstance(run.spec, TrainSpec):
            yield run, run.spec, bars


def _told(bars: Bars) -> str:
    """As "24 microbatches in 374 ms"."""
    number = int(bars.microbatch.max(initial=-1)) + 1
    return f"{count(number, 'microbatch', 'microbatches')} in {seconds(bars.makespan)}"
