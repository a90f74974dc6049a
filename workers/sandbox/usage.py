"""What a run uses at this moment: its processes, their memory, its files."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

KIB = 1024
DEEPEST = 100
"""Folders in each other that are looked into, each held open meanwhile."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
EASY_TO_KILL = 500
"""Out of memory, the kernel ends a rank before the agent, the database or a desktop."""


@dataclass(frozen=True, slots=True)
class Usage:
    """`tasks` are processes and threads, `memory` is in bytes."""

    tasks: int = 0
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Files:
    """`size` in bytes, as long as the files say, holes included. `is_closed`: there is a folder
    that this user may not look into."""

    count: int = 0
    size: int = 0
    is_too_deep: bool = False
    is_closed: bool = False


def of_processes(outermost: int) -> Usage:
    """Of everything that descends from the process `outermost`; nothing once it is gone. Each is
    made easy to kill again, whatever it said itself."""
    tasks = memory = 0
    with suppress(psutil.Error):
        for process in psutil.Process(outermost).children(recursive=True):
            with suppress(psutil.Error, OSError):
                threads, held = _of_process(process)
                tasks, memory = tasks + threads, memory + held
            with suppress(OSError):
                Path(f"/proc/{process.pid}/oom_score_adj").write_text(str(EASY_TO_KILL))
    return Usage(tasks, memory)


def _of_process(process: psutil.Process) -> tuple[int, int]:
    """Threads, and bytes that are the process's own or shared in memory: code that is
    mapped from files costs a machine nothing for one rank more."""
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        return process.num_threads(), process.memory_info().rss
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    held = (int(fields.get(name, "0 kB").split()[0]) for name in ("RssAnon", "RssShmem"))
    return int(fields["Threads"]), sum(held) * KIB


def of_folder(folder: Path, most: int) -> Files:
    """Everything below `folder`, from each folder to the next and through no link, so that it is
    found wherever it lies; stops at more than `most` files, at `DEEPEST` folders, or at a closed
    one."""
    try:
        top = os.open(folder, FOLDER)
    except PermissionError:
        return Files(is_closed=True)
    except OSError:
        return Files()
    found = _Count(most)
    try:
        found.add_all(top, 0)
    finally:
        os.close(top)
    return Files(found.count, found.size, found.is_too_deep, found.is_closed)


class _Count:
    def __init__(self, most: int) -> None:
        self._most = most
        self.count = self.size = 0
        self.is_too_deep = self.is_closed = False

    def add_all(self, place: int, depth: int) -> None:
        """What is in the open folder `place`."""
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                self.count += 1
                try:
                    self._add(entry, place, depth)
                except PermissionError:
                    self.is_closed = True
                except OSError:
                    pass  # it has just been removed
                if self.count > self._most or self.is_too_deep or self.is_closed:
                    return

    def _add(self, entry: os.DirEntry[str], place: int, depth: int) -> None:
        self.size += entry.stat(follow_symlinks=False).st_size
        if not entry.is_dir(follow_symlinks=False):
            return
        if depth == DEEPEST:
            self.is_too_deep = True
            return
        below = os.open(entry.name, FOLDER, dir_fd=place)
        try:
            self.add_all(below, depth + 1)
        finally:
            os.close(below)
