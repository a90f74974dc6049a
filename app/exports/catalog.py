"""Every form in which a run can be taken away."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from app import visible
from app.exports.chrome import chrome_trace
from app.exports.run_document import run_document
from app.exports.tables import metrics_csv, metrics_parquet, spans_parquet
from app.exports.tensorboard_events import tensorboard_events
from app.exports.timeline_page import timeline_page
from backend.bootstrap import Backend
from backend.errors import InvalidInput
from backend.runs.history.records import LogLine
from backend.runs.run import Run


@dataclass(frozen=True, slots=True)
class Export:
    """`title` is for menus; the file is named "run-7<suffix>"."""

    name: str
    title: str
    suffix: str
    media: str
    write: Callable[[Backend, Run], bytes]

    def file_name(self, run: Run) -> str:
        return f"run-{run.id}{self.suffix}"

    @property
    def needs_timeline(self) -> bool:
        """Whether a run without a timeline has nothing to give in this form."""
        return self.name in ("spans", "trace", "html", "png")


def _document(backend: Backend, run: Run) -> bytes:
    return orjson.dumps(run_document(backend, run, with_logs=True), option=orjson.OPT_INDENT_2)


def _log(backend: Backend, run: Run) -> bytes:
    return log_text(backend.runs.logs.every(run.id)).encode()


def log_text(lines: Iterable[LogLine]) -> str:
    """A log as a file: UTC with milliseconds, and a line for a line."""
    return "".join(
        f"{datetime.fromtimestamp(line.time, UTC).isoformat(timespec='milliseconds')} "
        f"{source(line)} {visible.line(line.text)}\n"
        for line in lines
    )


def source(line: LogLine) -> str:
    """Who wrote a line of a log."""
    return "agent" if line.rank is None else f"rank{line.rank}"


def _picture(backend: Backend, run: Run) -> bytes:
    from app.exports.timeline_picture import (
        timeline_picture,  # what it draws with is slow to import
    )

    return timeline_picture(backend, run)


BINARY = "application/octet-stream"
PARQUET = "application/vnd.apache.parquet"
EXPORTS = {
    export.name: export
    for export in (
        Export("json", "Everything, as JSON", ".json", "application/json", _document),
        Export("csv", "Metrics, as CSV", "-metrics.csv", "text/csv; charset=utf-8", metrics_csv),
        Export("parquet", "Metrics, as Parquet", "-metrics.parquet", PARQUET, metrics_parquet),
        Export("tensorboard", "Metrics, for TensorBoard", ".tfevents", BINARY, tensorboard_events),
        Export("spans", "Timelines, as Parquet", "-spans.parquet", PARQUET, spans_parquet),
        Export("trace", "Timelines, for Perfetto", "-trace.json", "application/json", chrome_trace),
        Export("html", "Timeline, as a page", ".html", "text/html; charset=utf-8", timeline_page),
        Export("png", "Timeline, as a picture", ".png", "image/png", _picture),
        Export("log", "Log, as text", ".log", "text/plain; charset=utf-8", _log),
    )
}


def export_named(name: str) -> Export:
    """Raises `InvalidInput` where there is none of that name."""
    if name not in EXPORTS:
        raise InvalidInput(
            f"no export format {name[:100]!r}", f"Choose one of: {', '.join(EXPORTS)}."
        )
    return EXPORTS[name]
