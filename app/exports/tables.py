"""A run's metrics and spans as tables, for CSV and Parquet."""

from io import BytesIO
from typing import get_args

import pyarrow as pa
from pyarrow import csv, parquet

from app import visible
from app.exports.run_document import columns
from backend.bootstrap import Backend
from backend.pipeline.timeline import Timeline
from backend.runs.history.records import TimelineKind
from backend.runs.run import Run

KINDS: tuple[TimelineKind, ...] = ("measured", "predicted")
METRICS = pa.schema(
    [
        ("metric", pa.string()),
        ("step", pa.int64()),
        ("epoch", pa.int64()),
        ("value", pa.float64()),
        ("time", pa.float64()),
    ]
)
SPANS = pa.schema(
    [
        ("kind", pa.string()),
        ("segment", pa.int64()),
        ("rank", pa.int64()),
        ("index", pa.int64()),
        ("action", pa.string()),
        ("start", pa.float64()),
        ("end", pa.float64()),
    ]
)


def metrics_csv(backend: Backend, run: Run) -> bytes:
    """One row per value: metric, step (minibatches since the start), epoch, value, Unix time."""
    sink = BytesIO()
    csv.write_csv(metrics(backend, run), sink)
    return visible.text(sink.getvalue().decode()).encode()


def metrics_parquet(backend: Backend, run: Run) -> bytes:
    """The same as Parquet."""
    return _parquet(metrics(backend, run))


def spans_parquet(backend: Backend, run: Run) -> bytes:
    """One row per action: kind of timeline, segment (epoch), rank, seconds since it began."""
    tables = [
        _spans(backend, run, kind, segment)
        for kind in get_args(TimelineKind)
        for segment in backend.runs.spans.segments(run.id, kind)
    ]
    return _parquet(pa.concat_tables(tables) if tables else SPANS.empty_table())


def metrics(backend: Backend, run: Run) -> pa.Table:
    """Every point of every metric, by name and step."""
    points = [
        (name, point)
        for name in backend.runs.metrics.names(run.id)
        for point in backend.runs.metrics.list(run.id, name)
    ]
    return pa.table(
        {
            "metric": [name for name, _ in points],
            "step": [point.step for _, point in points],
            "epoch": [point.epoch for _, point in points],
            "value": [point.value for _, point in points],
            "time": [point.time for _, point in points],
        },
        METRICS,
    )


def _spans(backend: Backend, run: Run, kind: TimelineKind, segment: int) -> pa.Table:
    timeline = backend.runs.spans.timeline(run.id, kind, segment)
    spans = columns(timeline or Timeline.of(())) or {}
    number = len(spans["rank"])
    return pa.table(
        {"kind": [kind] * number, "segment": [segment] * number, **spans},
        SPANS,
    )


def _parquet(table: pa.Table) -> bytes:
    sink = BytesIO()
    parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()
