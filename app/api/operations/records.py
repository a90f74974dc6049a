"""What a run leaves behind: log, metrics, timelines, files, and exports of all of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Response
from fastapi.responses import FileResponse

from app.api.caller import CurrentCaller
from app.api.fields import Id, Lines, Offset, Points
from app.api.files import (
    OCTETS,
    artifact_file,
    checkpoint_file,
    download,
    file_of,
    ranged_file_of,
)
from app.api.operation import router as operations
from app.exports.catalog import EXPORTS, export_named
from app.exports.run_document import columns
from backend.errors import NotFound
from backend.runs.history.records import LogLine, MetricPoint, TimelineKind
from backend.runs.use import UsePoint

router = operations()


@dataclass(frozen=True, slots=True)
class LogPage:
    """`next` is what to give as `after` for the lines that follow."""

    lines: tuple[LogLine, ...]
    next: int


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


@router.get("/runs/{id:int}/logs")
def get_logs(caller: CurrentCaller, id: Id, after: Offset = 0, limit: Lines = 1000) -> LogPage:
    """Lines of the run's log, in order; ask again with `next` to follow it."""
    lines = caller.runs(id).logs.list(id, after, limit)
    return LogPage(tuple(lines), lines[-1].seq if lines else after)


@router.get("/runs/{id:int}/use")
def get_run_use(caller: CurrentCaller, id: Id) -> list[UsePoint]:
    """What each rank's process, or its GPU, used over time, in order of the ranks; a point per 5 s
    of the last half hour, per minute of 6 hours, per 10 minutes of a week."""
    backend = caller.services()
    backend.runs.get(id)
    return list(backend.use.of_run(id))


@router.get("/runs/{id:int}/metrics")
def list_metrics(caller: CurrentCaller, id: Id) -> Sequence[str]:
    """The names of the run's metrics."""
    return caller.runs(id).metrics.names(id)


@router.get("/runs/{id:int}/metrics/{name}")
def get_metric(
    caller: CurrentCaller, id: Id, name: str, points: Points = 1000
) -> Sequence[MetricPoint]:
    """One metric by minibatch; above `points` points each is the mean of neighbours."""
    return caller.runs(id).metrics.curve(id, name, points)


@router.get("/runs/{id:int}/timeline")
def get_timeline(
    caller: CurrentCaller, id: Id, kind: TimelineKind = "measured", segment: Offset | None = None
) -> Columns:
    """The measured or predicted actions of every rank in a segment (epoch, from 0; by default the
    last one)."""
    timeline = caller.runs(id).spans.timeline(id, kind, segment)
    if timeline is None:
        raise NotFound(
            f"run {id} has no {kind} timeline", "It is written at the end of each epoch."
        )
    return Columns(**{name: tuple(column) for name, column in (columns(timeline) or {}).items()})


@router.get("/runs/{id:int}/artifacts")
def list_artifacts(caller: CurrentCaller, id: Id) -> list[FileEntry]:
    """The files kept with the run."""
    return [FileEntry(a.name, a.size, a.sha256) for a in caller.runs(id).artifacts.list(id)]


@router.get("/runs/{id:int}/artifacts/{name:path}", **ranged_file_of(OCTETS))
def get_artifact(caller: CurrentCaller, id: Id, name: str) -> FileResponse:
    """One of its files, or a part of it (`Range`); its ETag is its SHA-256."""
    return artifact_file(caller, id, name)


@router.get("/checkpoints/{id:int}/{name}", **ranged_file_of(OCTETS))
def get_checkpoint_file(caller: CurrentCaller, id: Id, name: str) -> FileResponse:
    """A file of a checkpoint of `list_checkpoints`, or a part of it, as of `get_artifact`."""
    return checkpoint_file(caller, id, name)


@router.get(
    "/runs/{id:int}/export",
    summary=f"Everything of the run as one file: {', '.join(EXPORTS)}.",
    **file_of(*sorted({each.media for each in EXPORTS.values()})),
)
def export_run(caller: CurrentCaller, id: Id, format: str = "json") -> Response:
    """In one of the documented formats."""
    export, backend = export_named(format), caller.services()
    run = backend.runs.get(id)
    return download(export.write(backend, run), export.file_name(run), export.media)
