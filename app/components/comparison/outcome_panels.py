"""The pairs side by side in pictures, all on the same scales."""

from collections.abc import Sequence

import streamlit as st

from app.charts.bars import bars_of
from app.charts.canvas import canvas_bytes, row_names
from app.charts.frame import CONFIG
from app.charts.held import held
from app.charts.idle import idle
from app.components.comparison.outcome_table import stage_rows
from app.components.shell.card import card
from app.components.timeline.timeline_canvas import timeline_canvas
from app.formats import percent, plain, seconds
from app.naming import rank_names
from app.queries.outcomes import Outcome
from app.session.state import Param
from backend.cluster.cluster import Cluster
from backend.pipeline.bubbles import Idle
from backend.pipeline.memory import Moment

TALL = 260  # pixels of one timeline
TIMELINE = "When each rank computes, sends and waits under "
IDLE = "Idle time by cause, as a share of all rank time"
HELD = "Memory of one device of each stage over time under "


def timelines(outcomes: Sequence[Outcome]) -> None:
    """One below the other on one time axis: they zoom and move together."""
    extent = max(found.timeline.makespan for found in outcomes)
    with card("Timelines", "one time axis; zoom or move one and all follow"):
        for number, found in enumerate(outcomes):
            bars = bars_of(found.timeline)
            data = canvas_bytes(
                bars,
                names=row_names(rank_names(found.prediction.plan), bars),
                alt=TIMELINE + found.name,
                param=Param.WINDOW.value,
                group="schedules",
                extent=extent,
                tall=TALL,
                title=f"#{number + 1} {found.name}: {told(found)}",
                follows=number > 0,
            )
            timeline_canvas(f"schedule-{number}", data)


def told(found: Outcome) -> str:
    """As "24 microbatches in 374 ms"."""
    return (
        f"{found.program.shape.num_microbatches} microbatches in {seconds(found.timeline.makespan)}"
    )


def bubbles(outcomes: Sequence[Outcome]) -> None:
    """Idle time by cause as bars, and as a table."""
    rows = [
        (found.name, found.idle, found.timeline.makespan * len(found.program.ranks))
        for found in outcomes
    ]
    with card("Bubble by cause", "share of all rank time, warm-up and drain included"):
        st.plotly_chart(idle(rows), key="idle", config=CONFIG, alt=IDLE)
        with st.expander("As a table", icon=":material/table:"):
            table: dict[str, list[str]] = {"plan and schedule": [name for name, _, _ in rows]}
            for cause in Idle:
                table[cause.value] = [
                    percent(causes[cause] / whole) if whole else "" for _, causes, whole in rows
                ]
            st.dataframe(table, hide_index=True, key="idle-table", alt=IDLE)


def memories(outcomes: Sequence[Outcome], cluster: Cluster) -> None:
    """Small multiples of the same height and width."""
    extent = max(found.timeline.makespan for found in outcomes)
    lines = [_lines(found) for found in outcomes]
    top = max(m.holding.total for found in lines for _, moments in found for m in moments)
    memories = [device.memory for device in cluster.each if device.memory is not None]
    limit = min(memories, default=None)
    said = "dotted: what a device has" if limit else "the devices' memory is not known"
    title = card("Memory over time", f"the first device of each stage; {said}")
    with title, st.container(key="panels-memory"):
        for number, found in enumerate(outcomes):
            with st.container():
                st.markdown(f":small[\\#{number + 1} &ensp; **{plain(found.name)}**]")
                drawing = held(lines[number], limit, extent, top)
                alt = HELD + found.name
                st.plotly_chart(drawing, key=f"held-{number}", config=CONFIG, alt=alt)


def _lines(found: Outcome) -> list[tuple[str, tuple[Moment, ...]]]:
    shape = found.program.shape
    return [
        (f"stage {pipeline_rank}", found.held[shape.first_ranks[pipeline_rank]])
        for pipeline_rank in range(shape.pipeline_size)
    ]


def stages(outcomes: Sequence[Outcome]) -> None:
    """Weight versions and staleness of every stage."""
    with card("Weight versions and staleness", "per stage, the worst of its replicas"):
        st.dataframe(
            stage_rows(outcomes),
            hide_index=True,
            key="stage-versions",
            alt="Weight versions and staleness of every stage",
        )
