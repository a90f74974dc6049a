"""A control group for the ranks of one run, where one can be made: the kernel itself bounds their
memory of every kind, files that lie in memory among it, and their number.

Version 2: beside the agent's own group, whose parent it must be allowed to change (as root, or in
a service with `Delegate=yes` and `DelegateSubgroup=`). Version 1: below the agent's own groups.
"""

import os
import shlex
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

import psutil

from workers.sandbox.limits import Limits

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
PREFIX = "stageflow-"
KERNEL = 64 << 20
"""Bytes beyond the limit of a run, for what the kernel itself holds for it: the guard, which tells
the limit's words, is meant to come first."""
OWN_PROCESSES = 8
"""Those of bubblewrap and the launcher, with their threads."""
PATIENCE = 10.0
"""Seconds that killed processes get to vanish: a busy machine takes a while to take memory back."""
_MADE = count()


class ControlGroup:
    """`folders`: one for memory and one for processes in version 1, one for both in version 2."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._folders = folders

    @staticmethod
    def of(limits: Limits, groups: Path = GROUPS, own: Path = OWN_GROUPS) -> "ControlGroup | None":
        """A new one with these limits; None where none that bounds memory can be made."""
        made: list[Path] = []
        is_bounded = False
        name = f"{PREFIX}{os.getpid()}-{next(_MADE)}"
        for place, wanted in _places(limits, groups, own):
            _clear(place)
            with suppress(OSError):
                (place / name).mkdir()
                made.append(place / name)
                for file, bound in wanted.items():
                    _set(place / name / file, bound)
                    is_bounded |= file in ("memory.max", "memory.limit_in_bytes")
        group = ControlGroup(tuple(made))
        if is_bounded:
            return group
        group.close()
        return None

    @property
    def entering(self) -> str:
        """What a shell says to be in it, with all that it starts."""
        return " ".join(f"echo $$ >{shlex.quote(str(f))}/cgroup.procs;" for f in self._folders)

    @property
    def is_out_of_memory(self) -> bool:
        """Has the kernel ended a process of it for that?"""
        for folder in self._folders:
            for name in ("memory.events", "memory.oom_control"):
                with suppress(OSError):
                    words = (folder / name).read_text().split()
                    counts = dict(zip(words[::2], words[1::2], strict=False))
                    if int(counts.get("oom_kill", "0")):
                        return True
        return False

    def close(self) -> None:
        """End what is left in it and take it away."""
        deadline = time.monotonic() + PATIENCE
        for folder in self._folders:
            while not _removed(folder) and time.monotonic() < deadline:
                _kill(folder)
                time.sleep(0.01)


def _places(limits: Limits, groups: Path, own: Path) -> Iterator[tuple[Path, Mapping[str, int]]]:
    """Where groups can lie, and the bounds of one there."""
    memory, tasks = limits.memory + KERNEL, limits.processes + OWN_PROCESSES
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        below = groups / controllers / path.lstrip("/")
        match controllers:
            case "memory":
                yield below, {"memory.limit_in_bytes": memory}
            case "pids":
                yield below, {"pids.max": tasks}
            case "":
                place = below if path == "/" else below.parent
                with suppress(OSError):  # a hybrid machine has no such group, or not these in it
                    _set(place / "cgroup.subtree_control", "+memory +pids")
                    yield place, {"memory.max": memory, "memory.swap.max": 0, "pids.max": tasks}
            case _:
                pass


def _removed(folder: Path) -> bool:
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _kill(folder: Path) -> None:
    with suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def _set(file: Path, value: object) -> None:
    """Write a file that the kernel has made. Raises `OSError` where there is none."""
    with file.open("r+") as there:
        there.write(str(value))


def _clear(place: Path) -> None:
    """Away with the groups that dead agents left."""
    for folder in place.glob(f"{PREFIX}*-*"):
        pid = folder.name.removeprefix(PREFIX).split("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            _removed(folder)
