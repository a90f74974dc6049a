"""How fast an attempt went, by the losses that it left."""

from collections.abc import Sequence

from backend.runs.history.records import MetricPoint, StoredAttempt


def updates_per_second(attempt: StoredAttempt, losses: Sequence[MetricPoint]) -> float | None:
    """Of the losses that were written while it went on; None where there are too few."""
    first = attempt.started_at.timestamp()
    last = attempt.finished_at.timestamp() if attempt.finished_at else float("inf")
    own = [point for point in losses if first <= point.time <= last]
    if len(own) < 2 or own[-1].time <= own[0].time:
        return None
    return (own[-1].step - own[0].step) / (own[-1].time - own[0].time)
