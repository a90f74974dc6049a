"""Ranks that run one module are forked by a process that imported it, and are as if started."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import psutil
import pytest

from backend.sandbox_level import SandboxLevel
from backend.settings import Settings
from workers.sandbox.bubblewrap import PROJECT
from workers.sandbox.cell import Cell, LaunchRequest
from workers.sandbox.limits import Limits
from workers.sandbox.room import Room
from workers.supervisor.ranks import processes

TELLS = """
    import random
    import numpy

    PID = os.getpid()

    def main():
        print(json.dumps({
            "rank": os.environ["RANK"], "own": os.environ.get("OWN"), "words": sys.argv[1:],
            "imported": PID, "pid": os.getpid(), "parent": os.getppid(), "session": os.getsid(0),
            "drawn": [random.random(), numpy.random.rand()],
            "open": [n for n in range(99) if os.path.exists(f"/proc/self/fd/{n}")],
            "name": open("/proc/self/comm").read().strip(),
            "told": int(os.environ["EVENT_PIPE"]), "input": sys.stdin.read(),
        }))
        print("to the other pipe", os.environ["RANK"], file=sys.stderr)
        os.write(int(os.environ["EVENT_PIPE"]), b"an event\\n")
        return 10 + int(os.environ["RANK"])
"""

Made = Callable[..., Cell]


@pytest.fixture(params=["bubblewrap", "limits"])
def level(request: pytest.FixtureRequest) -> SandboxLevel:
    if request.param == "bubblewrap":
        request.getfixturevalue("bubblewrap")
    return SandboxLevel(request.param)


@pytest.fixture
def make_cell(tmp_path: Path, level: SandboxLevel) -> Iterator[Made]:
    """Ranks of a module, which is a text, with variables of their own."""
    made: list[Cell] = []
    folder = tmp_path / "home" / "runs" / "1" / "attempt-1"

    def make(text: str, num_ranks: int = 2, gpus: bool = False) -> Cell:
        room = Room(folder, tmp_path / "home")
        room.work.mkdir(parents=True)
        (room.work / "program.py").write_text("import json, os, sys\n" + dedent(text))
        common = {"PYTHONPATH": str(PROJECT), "HOME": str(room.work), "OMP_NUM_THREADS": "1"}
        ranks = tuple({**common, "RANK": str(n), f"OWN{n or ''}": "x"} for n in range(num_ranks))
        command = (sys.executable, "-u", "-m", "program", "a", "word")
        order = LaunchRequest(command, ranks, Limits.of(Settings(home=tmp_path)), gpus)
        made.append(Cell(room, order, level))
        return made[-1]

    yield make
    for cell in made:
        cell.end(grace=0)
        for output in (*cell.outputs, *cell.events):
            output.close()
    assert processes.of_attempt(folder, ()) == []


def exits(cell: Cell, number: int = 2) -> dict[int, int]:
    deadline = time.monotonic() + 240
    while len(cell.exits()) < number and time.monotonic() < deadline:
        time.sleep(0.02)
    return cell.exits()


def told(cell: Cell) -> list[dict[str, Any]]:
    """What each rank printed, in their order."""
    return [json.loads(output.read()) for output in cell.outputs[::2]]


def test_each_has_what_a_process_of_its_own_has(make_cell: Made) -> None:
    cell = make_cell(TELLS)
    assert exits(cell) == {0: 10, 1: 11}
    first, second = told(cell)
    assert [each["rank"] for each in (first, second)] == ["0", "1"]
    assert [each["name"] for each in (first, second)] == ["rank 0", "rank 1"]
    assert (first["own"], second["own"]) == ("x", None)
    assert first["imported"] == second["imported"] not in {first["pid"], second["pid"]}
    assert first["parent"] == second["parent"] != first["imported"]
    for each in (first, second):
        assert each["words"] == ["a", "word"]
        assert each["session"] == each["pid"]
        assert each["open"] == [0, 1, 2, each["told"]]
        assert each["input"] == ""
    assert not set(first["drawn"]) & set(second["drawn"])
    errors = [output.read() for output in cell.outputs[1::2]]
    assert errors == ["to the other pipe 0\n", "to the other pipe 1\n"]
    assert [pipe.read() for pipe in cell.events] == ["an event\n"] * 2


def test_what_ranks_import_later_is_imported_before_they_are_forked(make_cell: Made) -> None:
    """Once, by the process that is no rank; nothing that is there then is looked through again."""
    cell = make_cell("""
        import gc
        def before_fork(words):
            global PREPARED
            PREPARED = os.getpid(), words

        def main():
            print(json.dumps({"prepared": PREPARED, "pid": os.getpid(), "sees": gc.isenabled(),
                              "kept": gc.get_freeze_count()}))
    """)
    assert exits(cell) == {0: 0, 1: 0}
    first, second = told(cell)
    (process, words), pids = first["prepared"], {first["pid"], second["pid"]}
    assert first["prepared"] == second["prepared"]
    assert process not in pids
    assert words == ["a", "word"]
    assert first["sees"]
    assert first["kept"] > 1000


def test_threads_of_an_import_are_not_lost(make_cell: Made) -> None:
    """A fork has none of them: the ranks import anew."""
    cell = make_cell("""
        import threading
        thread = threading.Thread(target=threading.Event().wait, daemon=True)
        thread.start()
        PID = os.getpid()

        def main():
            print(json.dumps([PID == os.getpid(), threading.active_count(), sys.argv[1:]]))

        if __name__ == "__main__":
            main()
    """)
    assert exits(cell) == {0: 0, 1: 0}
    assert told(cell) == [[True, 2, ["a", "word"]]] * 2


def test_what_the_import_raises_ends_every_rank(make_cell: Made) -> None:
    cell = make_cell("raise ImportError('no such library')")
    assert exits(cell) == {0: 1, 1: 1}
    assert cell.outputs[1].read().endswith("ImportError: no such library\n")


def test_a_rank_that_is_killed_ends_alone(make_cell: Made) -> None:
    cell = make_cell("""
        import signal, time
        def main():
            if os.environ["RANK"] == "1":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
    """)
    assert exits(cell, 1) == {1: -signal.SIGKILL}


def test_an_end_comes_during_the_import_too(make_cell: Made) -> None:
    cell = make_cell("import time; print('imports', flush=True); time.sleep(60)")
    assert cell.outputs[0].readline() == "imports\n"
    cell.end()
    assert set(cell.exits()) == {0, 1}


def test_a_killed_launcher_takes_its_ranks_along(make_cell: Made, tmp_path: Path) -> None:
    """As the mains ask of the kernel: the launcher is the parent from their first moment."""
    cell = make_cell("""
        import time
        from workers.runtime.process import die_with_parent
        def main():
            die_with_parent()
            print("begun", flush=True)
            time.sleep(600)
    """)
    assert [output.readline() for output in cell.outputs[::2]] == ["begun\n"] * 2
    folder = tmp_path / "home" / "runs" / "1" / "attempt-1"
    (launcher,) = {process.ppid() for process in processes.of_attempt(folder, ())}
    os.kill(launcher, signal.SIGKILL)
    deadline = time.monotonic() + 120
    while processes.of_attempt(folder, ()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes.of_attempt(folder, ()) == []
    assert not psutil.pid_exists(launcher) or psutil.Process(launcher).status() == "zombie"


@pytest.mark.parametrize(
    ("changed", "begins"),
    [
        ({}, (sys.executable, "-u", "-m", "workers.sandbox.forking", "m", "w")),
        ({"environments": ({},)}, ()),
        ({"gpus": True}, ()),
        ({"command": (sys.executable, "-u", "-c", "pass")}, ()),
    ],
    ids=["several", "one", "with GPUs", "no module"],
)
def test_who_is_forked(changed: dict[str, Any], begins: tuple[str, ...]) -> None:
    given = {"command": (sys.executable, "-u", "-m", "m", "w"), "environments": ({}, {})}
    assert LaunchRequest(**{**given, "limits": Limits.of(Settings()), **changed}).forker == begins
