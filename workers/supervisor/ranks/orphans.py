"""Which processes an agent started, in a file beside the run, so that the next agent can
end those that outlived it."""

import socket
from dataclasses import dataclass
from pathlib import Path

from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from workers.pid import Pid
from workers.supervisor.ranks import processes

FILE = "ranks.json"
HERE = socket.gethostname()
"""The host whose processes have these numbers."""


@dataclass(frozen=True, slots=True)
class StartedProcesses:
    """An agent and the rank processes it started; each rank leads its own session."""

    agent: Pid
    ranks: tuple[Pid, ...]
    host: str = HERE


def remember(folder: Path, agent: Pid, ranks: tuple[Pid, ...]) -> None:
    """Write the file; raises `OSError` (a full disk)."""
    (folder / FILE).write_bytes(to_json(StartedProcesses, StartedProcesses(agent, ranks)))


def forget(folder: Path) -> None:
    """Nothing of this attempt runs any more."""
    (folder / FILE).unlink(missing_ok=True)


def reap(runs: Path) -> list[Path]:
    """End what dead agents of this host left behind under `runs`; return the attempts' folders."""
    return [file.parent for file in sorted(runs.glob(f"*/*/{FILE}")) if _reap(file)]


def attempt_of(folder: Path) -> tuple[int, int]:
    """(run, attempt) whose folder it is: .../<run>/attempt-<attempt>."""
    return int(folder.parent.name), int(folder.name.removeprefix("attempt-"))


def holder(folder: Path) -> str | None:
    """The host of the living agent that has this attempt in hand, None where there is none. The
    processes of another host cannot be seen: its agent counts as alive as long as its file is."""
    known = _known(folder / FILE)
    return known.host if known.host != HERE or known.agent.is_alive else None


def _reap(file: Path) -> bool:
    known = _known(file)
    if holder(file.parent) is not None:
        return False
    processes.end(file.parent, {pid.number for pid in known.ranks if pid.is_alive}, grace=0.5)
    forget(file.parent)
    return True


def _known(file: Path) -> StartedProcesses:
    try:
        known: StartedProcesses = from_json(StartedProcesses, file.read_bytes())
    except (InvalidInput, OSError):
        return StartedProcesses(Pid(0, 0.0), ())
    return known
