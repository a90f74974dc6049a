"""The rank processes of one attempt: started in sessions of their own, polled, ended."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from backend.runs.job import Job
from workers.supervisor import orphans, processes
from workers.supervisor.environment import rank_environment
from workers.supervisor.lines import Lines

Command = Callable[[Job, Path], Sequence[str]]
"""From a job and the path of its file to the command line of its ranks."""


class Ranks:
    """`world_size` processes that read the same job file."""

    def __init__(self, job: Job, command: Sequence[str], port: int, num_gpus: int = 0) -> None:
        self.folder = Path(job.folder)
        self.lines = Lines()
        self._running: list[subprocess.Popen[str]] = []
        try:
            for rank in range(job.world_size):
                env = rank_environment(rank, job.world_size, port, self.folder, num_gpus)
                self._start(rank, command, env)
        except OSError:
            self.end()
            raise

    def _start(self, rank: int, command: Sequence[str], env: dict[str, str]) -> None:
        process = subprocess.Popen(
            command,
            env=env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._running.append(process)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            self.lines.listen(rank, pipe)
        orphans.remember(self.folder, orphans.Pid.of(os.getpid()), self._pids)

    @property
    def _pids(self) -> tuple[orphans.Pid, ...]:
        return tuple(orphans.Pid.of(process.pid) for process in self._running)

    def exits(self) -> dict[int, int]:
        """Exit codes by rank of those that have ended (-9: killed by signal 9)."""
        codes = {rank: process.poll() for rank, process in enumerate(self._running)}
        return {rank: code for rank, code in codes.items() if code is not None}

    def end(self, grace: float = processes.GRACE) -> list[int]:
        """End all processes of the attempt, grandchildren included; return the pids that
        would not go. May be called twice."""
        for process in self._running:
            process.poll()
        left = processes.end(self.folder, {p.pid for p in self._running}, grace)
        for process in self._running:
            process.poll()
        if not left:
            orphans.forget(self.folder)
        return left
