"""A scheduler's warning goes to every process of a job; only the agent acts on it."""

import os
import signal
import threading
import time
from pathlib import Path

import psutil

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
