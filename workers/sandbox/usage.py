"""What a run uses at this moment: its processes, their memory, its files."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

KIB = 1024
EASY_TO_KILL = 500
"""Out of memory, the kernel ends a rank before the agent, the database or a desktop."""


@dataclass(frozen=True, slots=True)
class Usage:
    """`tasks` are processes and threads, `memory` is in bytes."""

    tasks: int = 0
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Files:
    """`size` in bytes, as long as the files say, holes included."""

    count: int = 0
    size: int = 0


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
    """Everything below `folder`, links not followed; stops at more than `most` files."""
    count = size = 0
    waiting = [folder]
    while waiting and count <= most:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                count += 1
                with suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_size
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                if count > most:
                    break
    return Files(count, size)
