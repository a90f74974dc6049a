"""What an exported picture of a run shows: its last segment, measured and predicted."""

from dataclasses import dataclass

from app import formats
from app.charts.bars import Bars, read_bars
from app.naming import plan_name, rank_names
from backend.bootstrap import Backend
from backend.errors import NotFound
from backend.runs.history.records import TimelineKind
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run


@dataclass(frozen=True, slots=True)
class LastSegment:
    """`line` says what it is of."""

    title: str
    line: str
    measured: Bars
    predicted: Bars | None
    rank_names: tuple[str, ...]

    @property
    def num_microbatches(self) -> int:
        return int(self.measured.microbatch.max(initial=-1)) + 1


def last_segment(backend: Backend, run: Run) -> LastSegment:
    """Raises `NotFound` where there is no timeline yet."""
    segment = max(backend.runs.spans.segments(run.id), default=None)
    measured = None if segment is None else segment_bars(backend, run.id, "measured", segment)
    if segment is None or measured is None or not isinstance(run.spec, TrainSpec):
        raise NotFound(
            f"run {run.id} has no timeline", "It is written at the end of a training's first epoch."
        )
    line = (
        f"{plan_name(run.spec.plan)} · {run.state.value} · "
        f"{formats.percent(run.summary.accuracy)} · epoch {segment + 1}"
    )
    return LastSegment(
        f"{run.name} · run {run.id}",
        line,
        measured,
        segment_bars(backend, run.id, "predicted", segment),
        rank_names(run.spec.plan),
    )


def segment_bars(backend: Backend, run_id: int, kind: TimelineKind, segment: int) -> Bars | None:
    """The spans of one segment; None where there are none."""
    found = read_bars([part.data for part in backend.runs.spans.list(run_id, kind, segment)])
    return found if len(found) else None
