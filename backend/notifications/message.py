"""What is told of a run that has ended."""

from dataclasses import dataclass

from backend.runs.run import Run
from backend.units import percent_text


@dataclass(frozen=True, slots=True)
class Notification:
    """Plain text."""

    title: str
    body: str


def message_of(run: Run, address: str) -> Notification:
    """What became of the run, in lines; `address` is the dashboard's URL."""
    return Notification(f"Stageflow: {run.name} {run.state.value}", "\n".join(_lines(run, address)))


def _lines(run: Run, address: str) -> list[str]:
    lines = [f"Run {run.id} of {run.owner}" if run.owner else f"Run {run.id}"]
    if run.started_at is not None and run.finished_at is not None:
        lines.append(f"{(run.finished_at - run.started_at).total_seconds():.0f} s on {run.node}")
    if run.summary.accuracy is not None:
        lines.append(
            f"accuracy {percent_text(run.summary.accuracy, 2)} after {run.summary.epochs} epochs"
        )
    if run.error is not None:
        lines += [run.error.message, run.error.advice]
    return [line for line in (*lines, f"{address}/run?id={run.id}") if line]
