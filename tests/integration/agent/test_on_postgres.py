"""The same supervision on PostgreSQL, and what it does when the database goes away."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from backend.bootstrap import Backend
from backend.runs.history.listing import RunFilter
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.settings import Settings
from backend.storage.database import CONNECT_SECONDS
from tests.postgres import Postgres, postgres

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

Living = Callable[[Path], list[psutil.Process]]

TELLS = """
def work(rank, say, folder):
    say(Started(rank))
    print("hello from", rank)
    say(Metrics("accuracy", (1,), (0.5,), (1.0,), 0))
    say(Finished(rank, 1))
"""
SLEEPS = """
import time
def work(rank, say, folder):
    say(Started(rank))
    while not (folder / "stopped").exists():
        say(Heartbeat(rank))
        time.sleep(0.1)
    {told}
    time.sleep(600)
"""
PRINTS = 'print(rank, "without a database")'


@pytest.fixture
def server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture
def settings(tmp_path: Path, server: Postgres) -> Settings:
    return Settings(
        home=tmp_path / "home", node="tester", database_url=server.url, heartbeat=0.5, lease=8
    )


@pytest.mark.parametrize("told", [PRINTS, "pass"])
def test_a_run_is_kept_and_another_says_that_the_database_was_away(
    told: str,
    backend: Backend,
    server: Postgres,
    queued: Callable[[str], Run],
    supervised: Callable[..., Run],
    living: Living,
    eventually: Callable[..., None],
):
    run = supervised(queued(TELLS))
    assert (run.state, run.summary.accuracy) == (RunState.SUCCEEDED, 0.5)
    assert {line.text for line in backend.runs.logs.list(run.id)} >= {
        "hello from 0",
        "hello from 1",
    }

    def lose_the_database(folder: Path) -> None:
        eventually(lambda: len(living(folder)) == 2)
        eventually(lambda: backend.runs.list(RunFilter(states=(RunState.RUNNING,))).total)
        server.stop()
        (folder / "work" / "stopped").touch()
        eventually(lambda: not living(folder))
        time.sleep(CONNECT_SECONDS + 1)  # the dying server may have taken a connection in
        server.start()

    lost = supervised(queued(SLEEPS.format(told=told)), lose_the_database)
    assert lost.error is not None
    assert lost.error.kind == "DatabaseUnreachable"
    lines = [line.text for line in backend.runs.logs.list(lost.id)]
    assert len(lines) == len(set(lines))
    printed = {line for line in lines if line.endswith("without a database")}
    assert printed == (
        {f"{rank} without a database" for rank in (0, 1)} if told == PRINTS else set()
    )
    assert not list(backend.settings.home.glob("spool/*/*"))
    assert backend.runs.get(run.id) == run
