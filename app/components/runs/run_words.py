"""A run in a few words: what it does, how long it took, how far it is."""

from datetime import UTC, datetime

from app.formats import NOTHING, duration
from app.naming import plan_name
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run


def plan_label(run: Run) -> str:
    """The plan's short form, or what else the run does."""
    if isinstance(run.spec, TrainSpec):
        emulated = f" · emulated at {run.spec.emulate:g}" if run.spec.emulate else ""
        return plan_name(run.spec.plan) + emulated
    return f"profile · microbatch {run.spec.microbatch}"


def took(run: Run) -> str:
    """How long the run worked, so far or in all."""
    if run.started_at is None:
        return NOTHING
    return duration((run.finished_at or datetime.now(UTC)).timestamp() - run.started_at.timestamp())


def share_done(run: Run) -> float | None:
    """How much of the present phase is done, 0 to 1; None where nobody knows."""
    if run.progress is None or run.state.is_final or not run.progress.total:
        return None
    return min(1.0, run.progress.done / run.progress.total)
