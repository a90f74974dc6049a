"""What an exported picture of a run shows: its last segment, as much as can be drawn well."""

from dataclasses import dataclass

from app import formats
from app.charts.timeline import MAX_BARS, Stretch, Window, num_microbatches, within
from app.naming import plan_name, rank_names
from backend.bootstrap import Backend
from backend.errors import NotFound
from backend.runs.run import Run
from backend.runs.spec import TrainSpec


@dataclass(frozen=True, slots=True)
class Picture:
    """`line` says what it is of."""

    title: str
    line: str
    measured: Stretch
    predicted: Stretch | None
    rank_names: tuple[str, ...]


def last_segment(backend: Backend, run: Run, most: int = MAX_BARS) -> Picture:
    """The last segment, measured and predicted, of about `most` bars. Raises `NotFound` where
    there is no timeline yet."""
    segment = max(backend.runs.segments(run.id), default=None)
    measured = backend.runs.timeline(run.id, "measured", segment)
    if measured is None or not isinstance(run.spec, TrainSpec):
        raise NotFound(f"run {run.id} has no timeline", "It comes with a training's first epoch.")
    predicted = backend.runs.timeline(run.id, "predicted", segment)
    total = num_microbatches(measured)
    bars = len(measured.spans) + (len(predicted.spans) if predicted else 0)
    window = Window(0, max(1, min(total, total * most // max(bars, 1))))
    line = (
        f"{plan_name(run.spec.plan)} · {run.state.value} · "
        f"{formats.percent(run.summary.accuracy)} · epoch {(segment or 0) + 1}, microbatches "
        f"0 to {window.stop - 1} of {total} · measured above predicted"
    )
    return Picture(
        f"{run.name} · run {run.id}",
        line,
        within(measured, window),
        within(predicted, window) if predicted else None,
        rank_names(run.spec.plan),
    )
