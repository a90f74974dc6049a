"""How long a run still takes."""

from collections.abc import Sequence
from datetime import datetime

from backend.runs.history.records import MetricPoint
from backend.runs.run import Run


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
