"""A run's timelines as one Chrome trace: for Perfetto (ui.perfetto.dev) and chrome://tracing."""

from collections.abc import Iterator
from typing import Any

import orjson

from app.exports.tables import KINDS
from backend.bootstrap import Backend
from backend.pipeline.exchange.chrome_trace import write_trace
from backend.pipeline.timeline import Timeline
from backend.runs.history.records import TimelineKind
from backend.runs.run import Run

APART = 1000
"""Between the numbers of the processes of one timeline and those of the next."""


def chrome_trace(backend: Backend, run: Run) -> bytes:
    """The last segment, measured and predicted; microseconds since the segment began."""
    segment = max(backend.runs.spans.segments(run.id), default=None)
    events: list[dict[str, Any]] = []
    for number, kind in enumerate(KINDS):
        timeline = backend.runs.spans.timeline(run.id, kind, segment)
        if timeline is not None:
            events += _events(timeline, kind, APART * number)
    return orjson.dumps({"displayTimeUnit": "ms", "traceEvents": events})


def _events(timeline: Timeline, kind: TimelineKind, first: int) -> Iterator[dict[str, Any]]:
    """Those of one timeline, its processes numbered from `first` and named after its kind."""
    for event in orjson.loads(write_trace(timeline))["traceEvents"]:
        event["pid"] += first
        if "id" in event:
            event["id"] = f"{kind} {event['id']}"
        if event["name"] == "process_name":
            event["args"] = {"name": f"{kind}, {event['args']['name']}"}
        if event["name"] == "process_sort_index":
            event["args"] = {"sort_index": event["pid"]}
        yield event
