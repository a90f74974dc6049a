"""What is told of a run that has ended."""

from dataclasses import dataclass

from backend.runs.run import Run, RunError
from backend.units import count_text, duration_text, percent_text


@dataclass(frozen=True, slots=True)
class Notification:
    """Plain text."""

    title: str
    body: str


def message_of(run: Run, address: str) -> Notification:
    """What became of the run, in lines; `address` is the dashboard's URL."""
    return Notification(f"Stageflow: {run.name} {run.state.value}", "\n".join(_lines(run, address)))


def stalled_message(run: Run, why: RunError, address: str) -> Notification:
    """Of an attempt that stood still, of a run that goes on by itself."""
    lines = (f"Run {run.id} of {run.owner}" if run.owner else f"Run {run.id}", why.message)
    told = (*lines, "It goes on by itself.", f"{address}/run?id={run.id}")
    return Notification(f"Stageflow: {run.name} stalled", "\n".join(told))


def trial_message(address: str) -> Notification:
    """What somebody sends to try a place."""
    return Notification("Stageflow: a test", f"Notifications about runs arrive here.\n{address}")


def _lines(run: Run, address: str) -> list[str]:
    lines = [f"Run {run.id} of {run.owner}" if run.owner else f"Run {run.id}"]
    if run.started_at is not None and run.finished_at is not None:
        took = (run.finished_at - run.started_at).total_seconds()
        lines.append(f"{duration_text(took)} on {run.node}")
    if run.summary.accuracy is not None:
        lines.append(
            f"accuracy {percent_text(run.summary.accuracy, 2)} after "
            f"{count_text(run.summary.epochs, 'epoch')}"
        )
    if run.error is not None:
        lines += [run.error.message, run.error.advice]
    return [line for line in (*lines, f"{address}/run?id={run.id}") if line]
