"""A disk without room: the run says so by name and path, and earlier runs are intact."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from backend.bootstrap import Backend
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.settings import Settings

Queued = Callable[[str], Run]
Supervised = Callable[..., Run]

GOOD = """
def work(rank, say, folder):
    say(Started(rank))
    print("an early run")
    say(Metrics(f"score-{rank}", (1,), (0.5,), (1.0,), 0))
    say(Finished(rank, 1))
"""
RANK_FILLS = """
def work(rank, say, folder):
    say(Started(rank))
    if rank == 0:
        try:
            with open(folder / "huge", "wb") as file:
                while True:
                    file.write(bytes(1 << 16))
        except OSError as fault:
            say(Failed(rank, "RankFailed", str(fault)))
            raise SystemExit(1)
    import time
    time.sleep(60)
"""
CHATTERS = """
import time
def work(rank, say, folder):
    say(Started(rank))
    while True:
        print("x" * 4000)
        time.sleep(0.001)
"""


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """A home on a disk of 12 MB."""
    small = tmp_path / "small"
    small.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(small)]
    if sys.platform != "linux" or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here (it takes root on Linux)")
    yield Settings(home=small / "home", node="tester", heartbeat=0.5, lease=5)
    subprocess.run(["umount", "-l", str(small)], check=True)


@pytest.fixture
def early(queued: Queued, supervised: Supervised) -> Run:
    run = supervised(queued(GOOD))
    assert run.state is RunState.SUCCEEDED
    return run


def fill(folder: Path, leave: int) -> Path:
    """Take all but `leave` bytes of the disk that holds `folder`."""
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while (free := shutil.disk_usage(folder).free) > leave:
            file.write(bytes(min(free - leave, 1 << 16)))
    return filler


def assert_told(run: Run, settings: Settings) -> None:
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert run.error.kind == "DiskFull"
    assert "STAGEFLOW_HOME" in run.error.advice


def assert_intact(backend: Backend, run: Run) -> None:
    assert backend.runs.get(run.id) == run
    assert "an early run" in [line.text for line in backend.runs.logs.list(run.id)]
    for name in ("score-0", "score-1"):
        assert [p.value for p in backend.runs.metrics.list(run.id, name)] == [0.5]


def test_a_rank_that_fills_the_disk(
    early: Run, backend: Backend, queued: Queued, supervised: Supervised
):
    run = supervised(queued(RANK_FILLS))
    assert_told(run, backend.settings)
    assert run.error is not None
    assert "no space left" in run.error.message.lower()
    (backend.settings.run_folder(run.id, 1) / "work" / "huge").unlink()
    assert_intact(backend, early)


def test_a_database_that_cannot_grow(
    early: Run,
    backend: Backend,
    queued: Queued,
    supervised: Supervised,
    eventually: Callable[..., None],
):
    run = queued(CHATTERS)

    def fill_it(folder: Path) -> None:
        eventually(lambda: backend.runs.get(run.id).state is RunState.RUNNING)
        fill(backend.settings.home, 0)

    ended = supervised(run, fill_it)
    assert_told(ended, backend.settings)
    assert ended.error is not None
    assert str(backend.settings.home) in ended.error.message
    assert " free)" in ended.error.message
    (backend.settings.home / "filler").unlink()
    assert_intact(backend, early)


def test_a_disk_that_is_full_before_the_start(
    early: Run, backend: Backend, queued: Queued, supervised: Supervised
):
    run = queued(GOOD)
    filler = fill(backend.settings.home, 300_000)
    assert_told(supervised(run), backend.settings)
    filler.unlink()
    assert_intact(backend, early)
    assert supervised(queued(GOOD)).state is RunState.SUCCEEDED
