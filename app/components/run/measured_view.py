"""What the ranks did: the measured timeline above the predicted one, and where time went."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app import services
from app.charts.bars import Bars, with_loading
from app.charts.canvas import canvas_bytes, opening, row_names
from app.charts.deviations import CHECKPOINT, DATA, SPENT_ON, spent
from app.charts.frame import CONFIG
from app.charts.shares import attribution, spent_on
from app.components.run.deviation_view import deviation_view
from app.components.shell.layout import card
from app.components.shell.legend import legend
from app.components.timeline.timeline_view import timeline_canvas
from app.formats import NOTHING, percent, seconds
from app.naming import rank_names
from app.queries.segments import bars_of_run, expected_of, predicted_bars
from app.session import state
from app.session.state import Param
from backend.runs.events import Clock
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

ALT = "Share of each rank's time by what it was spent on"
TIMELINE = "When each rank computed, sent and waited, above what was predicted"
NEWEST = -1
STEADY = 10.0
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """The timelines of the segment that is shown."""

    measured: Bars
    predicted: Bars | None
    beside: Mapping[str, Bars]


def measured_view(run: Run) -> Shown | None:
    """The segment (epoch) that is chosen, the newest by default; None before the first."""
    segments = list(services.backend().runs.spans.segments(run.id))
    if not segments or not isinstance(run.spec, TrainSpec):
        return None
    with card(
        "Measured above predicted", "thick bars: measured; thin bars: predicted; label: microbatch"
    ):
        segment = _segment(segments, run)
        closed = run.state.is_final or segment < segments[-1]
        measured = bars_of_run(run, "measured", segment, closed=closed)
        if measured is None:
            return None
        predicted = predicted_bars(run, segment, measured)
        loading = bars_of_run(run, "loading", segment, closed=closed)
        shown = with_loading(measured, loading)
        _timeline(run, run.spec, segment, shown, predicted, closed=closed)
        if predicted is not None:
            cores = expected_of(run).cores
            is_shared = cores is not None and cores.is_said
            deviation_view(run.id, segment, measured, predicted, is_shared=is_shared)
        elif run.spec.plan_id is not None:
            st.caption("This segment is long: its prediction is stored when the run ends.")
        if run.summary.clocks:
            st.caption(clocks(run.summary.clocks))
        saving = bars_of_run(run, "saving", segment, closed=closed)
    beside = {DATA: loading, CHECKPOINT: saving}
    return Shown(measured, predicted, {cause: bars for cause, bars in beside.items() if bars})


def _timeline(
    run: Run, spec: TrainSpec, segment: int, measured: Bars, predicted: Bars | None, *, closed: bool
) -> None:
    names = tuple(row_names(rank_names(spec.plan), measured))
    if closed:
        segment_key = (services.backend().settings.sql_url, run.id, segment, predicted is None)
        data = _kept(segment_key, measured, predicted, names)
    else:
        data = _packed(measured, predicted, names)
    timeline_canvas(f"timeline-{run.id}", data)


@st.cache_resource(show_spinner=False, max_entries=4)
def _kept(
    key: tuple[str, int, int, bool], _measured: Bars, _predicted: Bars | None, _names: Names
) -> bytes:
    return _packed(_measured, _predicted, _names)


def _packed(measured: Bars, predicted: Bars | None, names: Names) -> bytes:
    return canvas_bytes(
        measured,
        predicted,
        names=names,
        alt=TIMELINE,
        param=Param.WINDOW.value,
        first=opening(measured),
    )


def time_view(run: Run, shown: Shown) -> None:
    """Where each rank's time went, over the whole segment."""
    if not isinstance(run.spec, TrainSpec):
        return
    rows = list(zip(rank_names(run.spec.plan), spent(shown.measured, shown.beside), strict=False))
    with card("Where the time went", "of each rank"):
        st.plotly_chart(attribution(rows), key="attribution", config=CONFIG, alt=ALT)
        legend(spent_on(rows))
        with st.expander("As a table", icon=":material/table:"):
            st.dataframe(shares(rows), hide_index=True, key="attribution-table", alt=ALT)


def clocks(found: Sequence[Clock]) -> str:
    """How far the clocks of other hosts were from rank 0's, on which the timeline is drawn."""
    told = ", ".join(
        f"rank {clock.rank} {clock.seconds:+.6f} s (± {seconds(clock.error)})" for clock in found
    )
    return f"On rank 0's clock. Ahead of it were: {told}; measured before the last epoch."


def shares(rows: list[tuple[str, dict[str, float]]]) -> dict[str, list[Any]]:
    """One row per rank, one column per cause that took any time."""
    causes = [cause for cause in SPENT_ON if any(spent.get(cause) for _, spent in rows)]
    totals = [sum(spent.values()) for _, spent in rows]
    table: dict[str, list[Any]] = {"rank": [name for name, _ in rows]}
    for cause in causes:
        table[cause] = [
            percent(spent.get(cause, 0.0) / total) if total else NOTHING
            for (_, spent), total in zip(rows, totals, strict=True)
        ]
    return table


def _segment(segments: list[int], run: Run) -> int:
    """The newest unless the URL names another; a new one does not move a choice."""
    if len(segments) == 1:
        return segments[0]
    newest = segments[-1] if run.state.is_final else _steady(segments[-1], run.id)
    key, named = f"segment-{run.id}", (state.number(Param.EPOCH) or 0) - 1
    st.session_state[key] = named if named in segments else NEWEST
    chosen: int = st.selectbox(
        "Epoch",
        [NEWEST, *reversed(segments)],
        format_func=lambda s: "Newest epoch" if s == NEWEST else f"Epoch {s + 1}",
        key=key,
        label_visibility="collapsed",
        width=170,
        on_change=lambda: state.put(Param.EPOCH, st.session_state[key] + 1 or None),
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
