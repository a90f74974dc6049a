"""How long a run still takes."""

from collections.abc import Sequence
from datetime import datetime
from math import inf

from backend.runs.history.records import MetricPoint
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

EARLY = 0.1
"""The share of a training whose mean pace says little yet: it counts the start."""
TOLD = frozenset({"train", "layers"})
"""The phases whose end is about the run's."""


def remaining(run: Run, now: datetime, losses: Sequence[MetricPoint] = ()) -> float | None:
    """Seconds until the phase is done at its recent pace; None before there is a pace.

    A training's pace is that of its last loss values where they are given, otherwise the mean
    since it began, which counts the time for which it waited after a restart.
    """
    found = run.progress
    if found is None or run.started_at is None or not 0 < found.done <= found.total:
        return None
    left = found.total - found.done
    if found.phase == "train" and len(losses) > 1 and losses[-1].time > losses[0].time:
        pace = (losses[-1].step - losses[0].step) / (losses[-1].time - losses[0].time)
        return left / pace if pace > 0 else None
    return (now - run.started_at).total_seconds() * left / found.done


def expected(run: Run, rate: float, now: datetime) -> float:
    """Seconds until a run ends, `inf` where nobody knows: as predicted, at `rate` samples/s (0 =
    nothing was), until a tenth of it is done, and at its mean pace then."""
    found = run.progress
    is_told = found is not None and found.phase in TOLD
    foreseen = predicted(run, rate, now)
    if not is_told or found is None or (found.done < EARLY * found.total and foreseen < inf):
        return foreseen
    seconds = remaining(run, now)
    return foreseen if seconds is None else seconds


def predicted(run: Run, rate: float, now: datetime) -> float:
    """Seconds that a training still takes at `rate`; `inf` where how many samples it has is not
    known, or it has taken longer already."""
    spec, found = run.spec, run.progress
    if not isinstance(spec, TrainSpec) or spec.emulate or not rate:
        return inf
    if found is not None and found.phase == "train":
        return (found.total - found.done) * spec.plan.microbatch * spec.plan.batch / rate
    if spec.data.name != "synthetic":
        return inf
    spent = 0.0
    if run.state.is_live and run.started_at is not None:
        spent = (now - run.started_at).total_seconds()
    left = spec.data.samples * spec.epochs / rate - spent
    return left if left > 0 else inf
