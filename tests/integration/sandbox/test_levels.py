"""Which sandbox a run gets, that it is shown, and that it is never weaker than it must be."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.runs.states import RunState
from backend.sandbox_level import SandboxLevel
from backend.settings import Settings
from tests.integration.sandbox.conftest import LIMITS, failure
from workers.sandbox.bubblewrap import PROJECT
from workers.sandbox.cell import Cell, LaunchRequest
from workers.sandbox.limits import Limits
from workers.sandbox.room import Room
from workers.sandbox.sandbox import detect

WORKS = "def work(rank, say, folder):\n    say(Started(rank)); say(Finished(rank))\n"
OTHER_USER = 12345


def test_a_run_keeps_its_level_and_its_log_says_it(either_lab):
    lab = either_lab()
    run = lab.works(WORKS)
    assert run.state is RunState.SUCCEEDED
    assert run.sandbox is lab.sandbox.level
    assert f"sandbox: {lab.sandbox.level}" in lab.text(run)


def test_a_run_below_the_minimum_is_refused(make_lab):
    lab = make_lab(LIMITS, minimum=SandboxLevel.BUBBLEWRAP)
    run = lab.works(WORKS)
    kind, message = failure(run)
    assert kind == "SandboxTooWeak"
    assert "tester reaches the level limits (for this test), and runs need bubblewrap" in message
    assert run.sandbox is None
    assert not lab.settings.run_folder(run.id, 1).exists()


@pytest.fixture
def broken_bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("broken_bwrap")
def test_a_bubblewrap_that_does_not_work_is_found_out(tmp_path: Path):
    found = detect(Settings(home=tmp_path / "home"))
    assert found.level is SandboxLevel.LIMITS
    assert "No permissions to create new namespace" in found.reason


def test_a_bubblewrap_that_stops_working_fails_the_run(lab, broken_bwrap):
    lab = lab()
    kind, message = failure(lab.works(WORKS))
    assert kind == "SandboxFailed"
    assert "No permissions to create new namespace" in message


def test_without_bubblewrap_the_level_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = detect(Settings(home=tmp_path / "home"))
    assert (found.level, found.reason) == (SandboxLevel.LIMITS, "bubblewrap is not installed")


def test_a_state_directory_beside_the_interpreter_stays_hidden(bubblewrap):
    """As where all of it lies below /usr/local or /opt."""
    with tempfile.TemporaryDirectory(dir=sys.prefix) as inside:
        assert detect(Settings(home=Path(inside))).level is SandboxLevel.BUBBLEWRAP


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that belongs to another user than root."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chown(folder, OTHER_USER, OTHER_USER)
        yield Path(folder)


def below_root(path: Path | str) -> Path | None:
    """The top folder in /root on the way to `path`, which only root may enter."""
    parts = Path(path).parts
    return Path(*parts[:3]) if parts[1] == "root" else None


@pytest.mark.skipif(os.getuid() != 0, reason="takes root to become another user")
def test_another_user_than_root_has_it_too(bubblewrap, open_folder: Path):
    """In a namespace where the interpreter can be seen by everybody."""
    script = Path(__file__).with_name("attempt_of_another_user.py")
    text = "set -e\n"
    for top in {below_root(path) for path in (sys.prefix, sys.base_prefix, PROJECT)} - {None}:
        copy = open_folder / top.relative_to("/")
        text += f"mkdir -p {copy}\nmount --bind {top} {copy}\n"
    text += f"test ! -d {open_folder}/root || mount --rbind {open_folder}/root /root\n"
    who = f"--reuid={OTHER_USER} --regid={OTHER_USER} --clear-groups"
    text += f"exec setpriv {who} {sys.executable} {script} {open_folder}/home\n"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)}
    ended = subprocess.run(
        ["unshare", "--mount", "sh", "-c", text], env=environment, capture_output=True, text=True
    )
    told = ["bubblewrap succeeded", "TooManyProcesses", "harm []", "bubblewrap []", "limits []"]
    assert ended.stdout.splitlines()[-5:] == told, ended


@pytest.fixture
def make_cell(tmp_path: Path) -> Iterator[Callable[..., Cell]]:
    """Some ranks of one shell command, at the level `limits`."""
    made: list[Cell] = []

    def make(command: str, num_ranks: int) -> Cell:
        folder = tmp_path / "home" / "runs" / "1" / "attempt-1"
        folder.mkdir(parents=True)
        limits = Limits.of(Settings(home=tmp_path))
        ranks = tuple({"RANK": str(rank)} for rank in range(num_ranks))
        order = LaunchRequest(("/bin/sh", "-c", command), ranks, limits)
        made.append(Cell(Room(folder, tmp_path / "home"), order, SandboxLevel.LIMITS))
        return made[-1]

    yield make
    for cell in made:
        cell.end()
        for output in (*cell.outputs, *cell.events):
            output.close()


def told(cell: Cell, number: int) -> dict[int, int]:
    """The exits of so many ranks."""
    deadline = time.monotonic() + 240
    while len(cell.exits()) < number and time.monotonic() < deadline:
        time.sleep(0.05)
    return cell.exits()


def test_the_exit_of_every_rank_is_told_however_soon_it_comes(make_cell):
    """The first of many is gone before the last is started."""
    cell = make_cell("exit $RANK", 40)
    codes = told(cell, 40)
    cell.end()
    assert codes == cell.exits() == {rank: rank for rank in range(40)}


def test_ranks_whose_launcher_was_killed_before_they_were_started_were_killed(make_cell):
    """A fault of a machine, as if they had begun: not of the sandbox, which would end the run."""
    cell = make_cell("exec sleep 60", 2)
    os.kill(cell.pid, signal.SIGKILL)
    assert told(cell, 2) == {0: -signal.SIGKILL, 1: -signal.SIGKILL}
