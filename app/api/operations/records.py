"""What a run leaves behind: log, metrics, timelines, files, and exports of all of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.api.fields import Lines, Offset, Points
from app.api.operation import Call, File, Operation
from app.export import columns
from app.exports.catalog import EXPORTS, export_named
from backend.errors import NotFound
from backend.runs.records import LogLine, MetricPoint, TimelineKind


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Lines behind sequence number `after`."""

    after: Offset = 0
    limit: Lines = 1000


@dataclass(frozen=True, slots=True)
class LogPage:
    """`next` is what to give as `after` for the lines that follow."""

    lines: tuple[LogLine, ...]
    next: int


@dataclass(frozen=True, slots=True)
class CurveQuery:
    """Above `points` points each is the mean of neighbours."""

    points: Points = 1000


@dataclass(frozen=True, slots=True)
class TimelineQuery:
    """`segment` (epoch, from 0): null = the last one."""

    kind: TimelineKind = "measured"
    segment: Offset | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """Spans by columns. Seconds since the segment began; actions as Stageflow writes them."""

    rank: tuple[int, ...]
    index: tuple[int, ...]
    action: tuple[str, ...]
    start: tuple[float, ...]
    end: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file kept with a run. `size` in bytes, `sha256` in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ExportQuery:
    """`format` is one of the documented ones."""

    format: str = "json"


def _logs(call: Call) -> LogPage:
    call.backend.runs.get(call.id)
    lines = call.backend.runs.logs(call.id, call.query.after, call.query.limit)
    return LogPage(tuple(lines), lines[-1].seq if lines else call.query.after)


def _names(call: Call) -> Sequence[str]:
    call.backend.runs.get(call.id)
    return call.backend.runs.metric_names(call.id)


def _curve(call: Call) -> Sequence[MetricPoint]:
    call.backend.runs.get(call.id)
    return call.backend.runs.curve(call.id, call.path["name"], call.query.points)


def _timeline(call: Call) -> Columns:
    call.backend.runs.get(call.id)
    timeline = call.backend.runs.timeline(call.id, call.query.kind, call.query.segment)
    if timeline is None:
        raise NotFound(f"run {call.id} has no {call.query.kind} timeline", "It comes by epochs.")
    return Columns(**{name: tuple(column) for name, column in (columns(timeline) or {}).items()})


def _files(call: Call) -> list[FileEntry]:
    call.backend.runs.get(call.id)
    return [FileEntry(a.name, a.size, a.sha256) for a in call.backend.runs.artifacts(call.id)]


def _file(call: Call) -> File:
    path = call.backend.runs.artifact_path(call.id, call.path["name"])
    if not path.is_file():
        raise NotFound(f"the file {call.path['name']!r} is no longer on disk")
    return File(path, call.path["name"], "application/octet-stream")


def _export(call: Call) -> File:
    export = export_named(call.query.format)
    run = call.backend.runs.get(call.id)
    return File(export.write(call.backend, run), export.file_name(run), export.media)


OPERATIONS = (
    Operation(
        "get_logs",
        "GET",
        "/runs/{id:int}/logs",
        "Lines of the run's log, in order; ask again with `next` to follow it.",
        _logs,
        LogPage,
        query=LogQuery,
    ),
    Operation(
        "list_metrics",
        "GET",
        "/runs/{id:int}/metrics",
        "The names of the run's metrics.",
        _names,
        Sequence[str],
    ),
    Operation(
        "get_metric",
        "GET",
        "/runs/{id:int}/metrics/{name}",
        "One metric by minibatch.",
        _curve,
        Sequence[MetricPoint],
        query=CurveQuery,
    ),
    Operation(
        "get_timeline",
        "GET",
        "/runs/{id:int}/timeline",
        "Who did what when, measured or predicted.",
        _timeline,
        Columns,
        query=TimelineQuery,
    ),
    Operation(
        "list_artifacts",
        "GET",
        "/runs/{id:int}/artifacts",
        "The files kept with the run.",
        _files,
        list[FileEntry],
    ),
    Operation(
        "get_artifact",
        "GET",
        "/runs/{id:int}/artifacts/{name:path}",
        "One of its files.",
        _file,
        None,
        media="application/octet-stream",
    ),
    Operation(
        "export_run",
        "GET",
        "/runs/{id:int}/export",
        f"Everything of the run as one file: {', '.join(EXPORTS)}.",
        _export,
        None,
        query=ExportQuery,
        media="application/octet-stream",
    ),
)
