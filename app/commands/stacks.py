"""Where the ranks of a live run are at this moment."""

import time
from collections.abc import Iterator
from typing import Annotated

import typer

from app import visible
from app.commands.history import RunId
from app.commands.options.acting import connect
from app.terminal import err, out
from backend.bootstrap import Backend
from backend.runs.history.records import LogLine

WAIT, QUIET = 10.0, 1.0
"""Seconds for the first line, and without a further one after which the stacks are whole."""
STACK = ("  File ", "  ...", "  <", "Thread 0x", "Current thread 0x")
"""How Python's faulthandler begins its lines."""


def stacks(
    run_id: RunId,
    rank: Annotated[int | None, typer.Option(min=0, help="Only this rank.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Ask and return.")] = False,
) -> None:
    """Print the stack of every thread of every rank; the run's log gets them too.

    Examples:

        stageflow stacks 42

        stageflow stacks 42 --rank 3
    """
    backend = connect()
    after = backend.runs.logs.newest(run_id)
    backend.runs.show_stacks(run_id)
    if detach:
        return err.print(f"asked; the stacks come into the log: stageflow logs {run_id}")
    found = [line for line in _lines(backend, run_id, after) if rank in (None, line.rank)]
    if not found:
        return err.print("no rank answered: processes that load Python or have ended cannot")
    for line in sorted(found, key=lambda each: (each.rank, each.seq)):
        out.print(f"rank {line.rank} {visible.line(line.text)}", highlight=False, soft_wrap=True)
    return None


def _lines(backend: Backend, run_id: int, after: int) -> Iterator[LogLine]:
    """Those of stacks behind line `after`, until no more come."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until and not backend.runs.get(run_id).state.is_final:
        for line in backend.runs.logs.every(run_id, after):
            after = line.seq
            if line.rank is not None and line.text.startswith(STACK):
                until = time.monotonic() + QUIET
                yield line
        time.sleep(QUIET / 4)
