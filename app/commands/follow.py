"""Watch a run from the terminal: a bar per phase, an error with advice at the end."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from app.server import launch
from app.terminal import err, warn
from backend.bootstrap import Backend
from backend.errors import StageflowError
from backend.runs.request.spec import PoolSpec
from backend.runs.run import Run
from backend.runs.states import RunState


class RunDidNotSucceed(StageflowError):
    """The run that the command was waiting for failed or was cancelled."""


@contextmanager
def node_agent(backend: Backend, pool: PoolSpec | None = None) -> Iterator[None]:
    """Make sure that somebody takes jobs: a pool, an agent that lives, or one for this command."""
    with ExitStack() as stack:
        if pool is None and not launch.has_agent(backend):
            err.print("No node agent is running: starting one for this command.")
            stack.enter_context(launch.redis(backend.settings))
            stack.enter_context(launch.agent(backend))
        yield


def follow(backend: Backend, run: Run) -> Run:
    """Show progress until the run is final and return it.

    Raises `RunDidNotSucceed` with the run's own error and advice. Ctrl-C leaves the run going.
    """
    try:
        with _bars() as bars:
            final = _watch(backend, run, bars)
    except KeyboardInterrupt:
        warn(
            f"run {run.id} goes on. Watch it: stageflow logs {run.id} -f   "
            f"end it: stageflow cancel {run.id}"
        )
        raise
    if final.state is not RunState.SUCCEEDED:
        message = final.error.message if final.error else "it was cancelled"
        advice = final.error.advice if final.error else ""
        raise RunDidNotSucceed(
            f"run {run.id} {final.state.value}: {message}",
            f"{advice} The log: stageflow logs {run.id}".strip(),
        )
    return final


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description:<28}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=err,
    )


def _watch(backend: Backend, run: Run, bars: Progress) -> Run:
    phases: dict[str, TaskID] = {}
    now = run
    while True:
        now = backend.runs.get(run.id)
        phase = now.progress.phase if now.progress else now.state.value
        if phase not in phases:
            _complete(bars, phases)
            phases[phase] = bars.add_task(f"{run.name}: {phase}", total=None)
        if now.progress:
            bars.update(phases[phase], completed=now.progress.done, total=now.progress.total)
        if now.state.is_final:
            if now.state is RunState.SUCCEEDED:
                _complete(bars, phases)
            return now
        time.sleep(0.25)


def _complete(bars: Progress, phases: dict[str, TaskID]) -> None:
    for task in bars.tasks:
        if task.id in phases.values():
            total = task.total or 1
            bars.update(task.id, total=total, completed=total)
