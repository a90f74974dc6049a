"""The pairs side by side: figures, the best of each column marked, and pictures on one scale."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.charts.bars import bars_of
from app.charts.canvas import canvas_bytes, row_names
from app.charts.frame import CONFIG
from app.charts.held import held
from app.charts.shares import idle
from app.components.plan.plan_figures import samples
from app.components.shell.layout import card
from app.components.timeline.timeline_view import timeline_canvas
from app.formats import (
    NOTHING,
    SPACE,
    count,
    percent,
    plain,
    rate,
    seconds,
    size,
    stages_words,
    times,
)
from app.naming import rank_names
from app.queries.outcomes import Outcome
from app.session.state import Param
from backend.cluster.cluster import Cluster
from backend.pipeline.bubbles import Idle
from backend.pipeline.memory import Moment
from backend.prediction.same_updates import samples_per_update

TALL = 260  # pixels of one timeline
TIMELINE = "When each rank computes, sends and waits under "
IDLE = "Idle time by cause, as a share of all rank time"
HELD = "Memory of one device of each stage over time under "
PLAIN = "without codecs"
"""A column where some pair has codecs."""
BEST = f"★{SPACE}"


@dataclass(frozen=True, slots=True)
class Measure:
    """A column: `value` to rank by unless it is only told, `text` for eyes."""

    title: str
    value: Callable[[Outcome], float]
    text: Callable[[float], str]
    most_is_best: bool = False
    is_ranked: bool = True


MEASURES = (
    Measure("samples", lambda o: o.prediction.samples_per_second, rate, most_is_best=True),
    Measure(
        "samples per update",
        lambda o: samples_per_update(o.prediction.plan),
        lambda v: count(int(v)),
        is_ranked=False,
    ),
    Measure(  # of as many samples as each pair has in one
        "per minibatch", lambda o: o.prediction.seconds_per_minibatch, seconds, is_ranked=False
    ),
    Measure("bubble", lambda o: o.prediction.bubble, percent),
    Measure("peak memory", lambda o: max(o.prediction.memory_bytes), size),
    Measure("sent per sample", lambda o: o.prediction.sent_bytes / samples(o.prediction), size),
    Measure(
        PLAIN,
        lambda o: (o.prediction.plain_bytes or o.prediction.sent_bytes) / samples(o.prediction),
        size,
        is_ranked=False,
    ),
    Measure("weight versions", lambda o: max(o.prediction.versions), lambda v: count(int(v))),
    Measure(
        "staleness",
        lambda o: o.prediction.staleness,
        lambda v: count(int(v), "update") if v else "none",
    ),
)


def outcome_table(outcomes: Sequence[Outcome], reference: float | None) -> None:
    """One row per pair; `reference` is data parallelism's samples/s."""
    st.table(outcome_rows(outcomes, reference))
    st.caption(
        f"{BEST.strip()} the best of its column. Throughput and bubble of the steady segment that "
        "is simulated; speed-up over data parallelism that synchronises every round."
    )


def outcome_rows(outcomes: Sequence[Outcome], reference: float | None) -> dict[str, list[Any]]:
    """The table by columns."""
    table: dict[str, list[Any]] = {
        "": [f"\\#{number + 1}" for number in range(len(outcomes))],
        "plan and schedule": [found.name for found in outcomes],
    }
    coded = any(found.prediction.plain_bytes for found in outcomes)
    for measure in MEASURES:
        if measure.title == PLAIN and not coded:
            continue
        values = [measure.value(found) for found in outcomes]
        marked = _marked(values, measure.text, measure.most_is_best)
        table[measure.title] = marked if measure.is_ranked else list(map(measure.text, values))
    speeds = [found.prediction.samples_per_second for found in outcomes]
    if reference:
        gains = [speed / reference for speed in speeds]
        table["over data parallel"] = _marked(gains, times, True)
    else:
        table["over data parallel"] = [NOTHING] * len(outcomes)
    return table


def _marked(values: Sequence[float], text: Callable[[float], str], most_is_best: bool) -> list[str]:
    """Equal ones are all marked, unless all are equal."""
    best = max(values) if most_is_best else min(values)
    told = len(set(map(text, values))) > 1
    return [f"**{BEST}{text(v)}**" if told and text(v) == text(best) else text(v) for v in values]


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
    said = "dotted: a device's memory" if limit else "the devices' memory is not known"
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
        (stages_words(shape.stages_of(pipeline_rank)), found.held[first])
        for pipeline_rank, first in enumerate(shape.first_ranks)
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


def stage_rows(outcomes: Sequence[Outcome]) -> dict[str, list[Any]]:
    """Weight versions and staleness of every stage, by columns."""
    most = max((len(found.staleness) for found in outcomes), default=0)
    table: dict[str, list[Any]] = {"plan and schedule": [found.name for found in outcomes]}
    for stage in range(most):
        table[f"stage {stage}"] = [_stage(found, stage) for found in outcomes]
    return table


def _stage(found: Outcome, stage: int) -> str:
    if stage >= len(found.staleness):
        return ""
    versions, stale = found.prediction.versions[stage], found.staleness[stage]
    late = f", {count(stale, 'update')} stale" if stale else ""
    return f"{count(versions, 'version')}{late}"
