"""Which sandbox this node has: tried out, not assumed."""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from backend.errors import StageflowError
from backend.sandbox_level import SandboxLevel
from backend.settings import Settings
from workers.sandbox import bubblewrap, call_filter
from workers.sandbox.cell import Cell, LaunchRequest, SandboxFailed
from workers.sandbox.limits import Limits
from workers.sandbox.room import Room

TRIAL = "import backend.runs.job, workers.sandbox"
"""What a rank must at least be able to do inside."""
UNFILTERED = "no filter of system calls: libseccomp2 is not installed"
PATIENCE = 30.0
"""Seconds that the trial may take."""


class SandboxTooWeak(StageflowError):
    """This node's sandbox does not reach the configured minimum."""

    advice = (
        "Install bubblewrap on that node (apt-get install bubblewrap) and start its agent "
        "again, or set STAGEFLOW_SANDBOX=limits: uploaded code can then read what the agent's "
        "user can read."
    )


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The best level that works here, and why it is no better ("" for the best of all)."""

    level: SandboxLevel
    reason: str = ""

    def require(self, minimum: SandboxLevel, node: str) -> None:
        """Raise `SandboxTooWeak` where this is weaker than `minimum`."""
        if not self.level.reaches(minimum):
            raise SandboxTooWeak(
                f"the sandbox of {node} reaches the level {self.level} ({self.reason}), "
                f"and runs need {minimum}"
            )


def detect(settings: Settings) -> Sandbox:
    """Start a process in bubblewrap as a run's are started; where that fails, the level is
    `limits`. Takes about a tenth of a second."""
    if bubblewrap.program() is None:
        return Sandbox(SandboxLevel.LIMITS, "bubblewrap is not installed")
    try:
        with tempfile.TemporaryDirectory(prefix="stageflow-trial-") as folder:
            room = Room(Path(folder), settings.home, shared=settings.shared_folder)
            _try(room, Limits.of(settings))
    except (StageflowError, OSError, subprocess.SubprocessError) as fault:
        return Sandbox(SandboxLevel.LIMITS, f"bubblewrap does not work here: {fault}")
    is_filtered = call_filter.program(gpus=False) is not None
    return Sandbox(SandboxLevel.BUBBLEWRAP, "" if is_filtered else UNFILTERED)


def _try(room: Room, limits: Limits) -> None:
    environment = {"PYTHONPATH": str(bubblewrap.PROJECT), "PATH": os.environ.get("PATH", "")}
    order = LaunchRequest((sys.executable, "-c", TRIAL), (environment,), limits)
    cell = Cell(room, order, SandboxLevel.BUBBLEWRAP)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (exits := cell.exits()) and time.monotonic() < deadline:
            time.sleep(0.01)
        if exits != {0: 0}:
            raise SandboxFailed(f"a trial process ended with {exits.get(0, 'no exit')}")
    finally:
        cell.end(grace=0)
        for output in (*cell.outputs, *cell.events):
            output.close()
