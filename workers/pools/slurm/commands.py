"""Slurm's commands, run so that the answer depends on nothing but the cluster."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from workers.pools.engine import EngineAway, OrderRefused

KEPT = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT"})
OURS = ("SLURM_", "SBATCH_", "SQUEUE_", "SINFO_", "SCANCEL_")
"""Variables by which a user, or a job that this process is in, changes what the commands do."""
AWAY = re.compile(
    "contact slurm|connect|timed out|time out|standby|temporarily|try again|zero bytes|"
    "communication|authentication|munge|incompatible versions|configuration source",
    re.IGNORECASE,
)
"""In what `sbatch` says where the order is not at fault."""
PREFIX = re.compile(
    r"^(?:sbatch|scancel|squeue|sinfo|error|allocation failure|fatal|"
    r"batch job submission failed): *",
    re.IGNORECASE,
)


def folder() -> str:
    """Where Slurm's commands are. Raises `EngineAway`."""
    found = shutil.which("sbatch")
    if found is None:
        raise EngineAway(
            "Slurm's commands are not on this machine",
            "Start the pool on a login node of the cluster, with sbatch in PATH.",
        )
    return str(Path(found).parent)


def answer(seconds: float, *words: str, script: str = "") -> subprocess.CompletedProcess[str]:
    """What a command prints. Raises `EngineAway`, and for `sbatch` `OrderRefused`."""
    program = f"{folder()}/{words[0]}"
    try:
        done = subprocess.run(
            [program, *words[1:]],
            env=_environment(),
            input=script,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise _away(f"{words[0]} has no answer after {seconds:g} s") from None
    except OSError as fault:
        raise _away(f"{words[0]} cannot be started: {fault}") from fault
    if not done.returncode:
        return done
    said = _said(done.stderr) or f"{words[0]} ended with {done.returncode}"
    if words[0] != "sbatch" or AWAY.search(said):
        raise _away(said)
    raise OrderRefused(
        f"Slurm refuses the job: {said}",
        "`sinfo` shows what the pool's partition has. Ask for less, or start the pool with "
        "another partition or other options.",
    )


def _environment() -> dict[str, str]:
    """Times are in UTC, in the standard form; messages in English."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT or not name.startswith(OURS)
    }
    return {**inherited, "TZ": "UTC", "LC_ALL": "C"}


def _said(text: str) -> str:
    """The last line, without the words before what matters."""
    line = next(reversed(text.strip().splitlines()), "")
    while (shorter := PREFIX.sub("", line)) != line:
        line = shorter
    return line


def _away(said: str) -> EngineAway:
    return EngineAway(
        f"Slurm does not answer: {said}",
        "Jobs that run go on meanwhile. `scontrol ping` says whether the controller is up.",
    )
