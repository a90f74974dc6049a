"""Timelines as a Chrome trace: for Perfetto (ui.perfetto.dev) and chrome://tracing.

Format: "Trace Event Format", Google, complete events ("ph": "X") and metadata ("ph": "M").
"""

from collections.abc import Iterator
from typing import Any

import orjson

from app.charts.palette import kind as kind_of
from app.charts.timeline import microbatch
from app.naming import rank_names
from backend.bootstrap import Backend
from backend.pipeline.notation import format_action
from backend.pipeline.timeline import Timeline
from backend.runs.run import Run
from backend.runs.spec import TrainSpec

MICROSECONDS = 1e6


def chrome_trace(backend: Backend, run: Run) -> bytes:
    """The last segment's timelines: a process each for measured and predicted, a thread per
    rank, microseconds since the segment began."""
    names = rank_names(run.spec.plan) if isinstance(run.spec, TrainSpec) else ()
    segment = max(backend.runs.segments(run.id), default=None)
    events: list[dict[str, Any]] = []
    for process, kind in enumerate(("measured", "predicted")):
        timeline = backend.runs.timeline(
            run.id, "measured" if process == 0 else "predicted", segment
        )
        if timeline is not None:
            events += _process(process, kind, timeline, names)
    return orjson.dumps({"displayTimeUnit": "ms", "traceEvents": events})


def _process(
    process: int, kind: str, timeline: Timeline, names: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    yield _named("process_name", process, 0, kind)
    for rank in range(timeline.num_ranks):
        yield _named("thread_name", process, rank, names[rank] if rank < len(names) else str(rank))
    for span in timeline.spans:
        yield {
            "ph": "X",
            "pid": process,
            "tid": span.rank,
            "name": f"{kind_of(span.action)} {_label(microbatch(span.action))}".strip(),
            "cat": kind_of(span.action),
            "ts": span.start * MICROSECONDS,
            "dur": span.seconds * MICROSECONDS,
            "args": {"action": format_action(span.action)},
        }


def _label(number: int) -> str:
    return str(number) if number >= 0 else ""


def _named(name: str, process: int, thread: int, value: str) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": process, "tid": thread, "args": {"name": value}}
