"""An agent whose write hangs for longer than it may ends its ranks by itself, and says why."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from backend.bootstrap import Backend
from backend.runs.history.listing import RunFilter
from backend.runs.run import Run
from backend.runs.states import RunState

pytestmark = pytest.mark.slow

SLEEPS = """
import time
def work(rank, say, folder):
    say(Started(rank))
    time.sleep(600)
"""


def test_a_write_that_takes_as_long_as_a_lease(
    backend: Backend,
    queued: Callable[[str], Run],
    supervised: Callable[..., Run],
    living: Callable[[Path], list[psutil.Process]],
    eventually: Callable[..., None],
):
    def lock_the_database(folder: Path) -> None:
        eventually(lambda: len(living(folder)) == 2)
        eventually(lambda: backend.runs.list(RunFilter(states=(RunState.RUNNING,))).total)
        with closing(sqlite3.connect(backend.settings.sqlite_file, timeout=30)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            eventually(lambda: not living(folder))

    run = supervised(queued(SLEEPS), lock_the_database)
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert run.error.kind == "AgentHeldUp"
    assert "STAGEFLOW_LEASE" in run.error.advice
