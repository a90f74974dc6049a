"""Signals: a scheduler's warning goes to every process of a job, and only the agent acts on it;
what asks for stacks goes to the ranks alone."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from backend.errors import StageflowError
from backend.runs.states import RunState

WORK = """
import subprocess, sys, time
def work(rank, say, folder):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    say(Started(rank))
    (folder / f"ready-{rank}").touch()
    while not (folder / "warned").exists():
        time.sleep(0.05)
    if child.poll() is not None:
        raise RuntimeError(f"its child ended with {child.poll()}")
    child.kill()
    child.wait()
    say(Finished(rank))
"""


STUCK = """
import faulthandler, signal, time
def waits_here(folder):
    while not (folder / "seen").exists():
        time.sleep(0.05)
def work(rank, say, folder):
    if rank == 0:
        faulthandler.register(signal.SIGUSR2)  # rank 1 cannot tell yet
    say(Started(rank))
    waits_here(folder)
    say(Finished(rank))
"""


def test_a_rank_tells_its_stack_when_somebody_asks(either_lab):
    lab = either_lab()
    work = lab.settings.run_folder(1, 1) / "work"

    def ask() -> None:
        runs = lab.backend.runs
        while "in waits_here" not in str(runs.logs.list(1)):
            with suppress(StageflowError):
                if runs.get(1).state is RunState.RUNNING:
                    runs.show_stacks(1)
            time.sleep(0.5)
        (work / "seen").touch()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    run = lab.works(STUCK)
    asking.join()
    assert (run.state, run.error) == (RunState.SUCCEEDED, None)
    told = [(line.rank, line.text) for line in lab.backend.runs.logs.list(1)]
    assert {rank for rank, text in told if "in waits_here" in text} == {0}
    assert (None, "the stacks of all ranks were asked for: they follow") in told


def test_no_process_of_a_run_dies_of_a_warning(either_lab):
    """Bubblewrap and its own processes, the launcher, the ranks and what they started."""
    lab = either_lab()
    work = lab.settings.run_folder(1, 1) / "work"
    warned: list[str] = []

    def warn() -> None:
        while not all((work / f"ready-{rank}").exists() for rank in range(2)):
            time.sleep(0.05)
        for process in psutil.Process(os.getpid()).children(recursive=True):
            warned.append(Path(process.name()).name)
            process.send_signal(signal.SIGUSR1)
        time.sleep(0.3)
        (work / "warned").touch()

    warning = threading.Thread(target=warn, daemon=True)
    warning.start()
    run = lab.works(WORK)
    assert (run.state, run.error) == (RunState.SUCCEEDED, None)
    warning.join()
    assert len(warned) >= 5  # the launcher, two ranks, and a child of each
