"""Slurm as an engine: one partition, through the commands that every user has."""

import os
import re
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from math import ceil
from pathlib import Path
from subprocess import CompletedProcess

from backend.runs.pools.job import JobOrder, JobState, Seen
from backend.runs.pools.room import PoolRoom
from workers.pools.engine import OrderRefused
from workers.pools.slurm import commands, listing
from workers.pools.slurm.script import checked, script

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Of a job, and of a partition: nothing that a command or a path would take for something else."""
PATIENCE = 45.0
"""Seconds for a command. Without a controller, sbatch itself gives up after 18."""
SHOWN = 4000
"""Characters of a job's output."""
KEPT, TIDY = 7 * 24 * 3600.0, 3600.0
"""Seconds for which the output of an ended job stays, and between two looks for older ones."""
ID = re.compile(r"(\d+)(?:;.*)?")


class SlurmEngine:
    """Jobs of one `partition`, as the user who runs this process.

    folder       for what jobs print; on a file system that the machines share
    environment  all that a job's agents are told by variables; their secrets lie in a folder
    options      of sbatch, as the site wants them: --account=lab, --cpus-per-gpu=8
    patience     seconds for each of Slurm's commands
    """

    def __init__(
        self,
        partition: str,
        folder: Path,
        environment: Mapping[str, str],
        options: Sequence[str] = (),
        patience: float = PATIENCE,
    ) -> None:
        self._partition = _named(partition)
        self._folder = folder.absolute()
        self._environment = checked(environment)
        self._options = tuple(options)
        self._patience = patience
        self._tidied = -TIDY

    def submit(self, order: JobOrder) -> str:
        """See `Engine.submit`."""
        seen = self.look().get(order.name)
        if seen is not None and seen.state is not JobState.GONE:
            return seen.engine_id
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        printed = self._batch(order, "--parsable").stdout
        last = next(reversed(printed.strip().splitlines()), "")
        if not (found := ID.fullmatch(last)):
            raise listing.unreadable("sbatch", printed)
        return found[1]

    def look(self) -> dict[str, Seen]:
        """See `Engine.look`. Slurm shows ended jobs for five minutes, or as its site says."""
        found = listing.jobs(
            self._list("squeue", "-u", str(os.getuid()), "-t", "all", "-o", listing.JOBS)
        )
        if time.monotonic() > self._tidied + TIDY:
            self._tidied = time.monotonic()
            self._tidy(found)
        return found

    def end(self, name: str) -> None:
        """See `Engine.end`. Running agents get SIGTERM, and SIGKILL after Slurm's KillWait."""
        where = f"--partition={self._partition}"
        commands.answer(
            self._patience, "scancel", f"--user={os.getuid()}", where, f"--name={_named(name)}"
        )

    def room(self) -> PoolRoom:
        """See `Engine.room`."""
        return listing.room(self._list("sinfo", "-N", "-O", listing.MACHINES))

    def estimate(self, order: JobOrder) -> datetime | None:
        """See `Engine.estimate`."""
        return listing.start(self._batch(order, "--test-only").stderr)

    def output(self, name: str) -> str:
        """See `Engine.output`."""
        try:
            with self._output(name).open("rb") as file:
                file.seek(max(file.seek(0, 2) - 4 * SHOWN, 0))
                return file.read().decode(errors="replace")[-SHOWN:]
        except FileNotFoundError:
            return ""

    def _tidy(self, there: Container[str]) -> None:
        """Old output goes, but for that of jobs that are `there`."""
        old = time.time() - KEPT
        for file in self._folder.glob("*.out"):
            with suppress(FileNotFoundError):
                if file.stem not in there and file.stat().st_mtime < old:
                    file.unlink()

    def _output(self, name: str) -> Path:
        return self._folder / f"{_named(name)}.out"

    def _list(self, command: str, *options: str) -> str:
        where = ("-h", "-p", self._partition)
        return commands.answer(self._patience, command, *where, *options).stdout

    def _batch(self, order: JobOrder, *options: str) -> CompletedProcess[str]:
        """What sbatch answers; the site's options come first, so that the order's win."""
        room = self.room()
        minutes = ceil((order.seconds or room.longest) / 60)  # 0 = without end
        of_each = "cpus-per-task" if room.machines[0].device.name == "cpu" else "gpus-per-node"
        wanted = (
            f"--partition={self._partition}",
            f"--job-name={_named(order.name)}",
            f"--nodes={order.nodes}",
            "--ntasks-per-node=1",
            f"--{of_each}={order.devices}",
            f"--time={minutes}",
            f"--signal=USR1@{ceil(order.warning)}",
            f"--output={str(self._output(order.name)).replace('%', '%%')}",
            f"--chdir={self._folder}",
            "--dependency=singleton",  # should two be submitted after all, one waits
            "--no-requeue",  # runs go on in a job of their own
            "--export=NONE",
        )
        text = script(order, self._environment, commands.folder())
        return commands.answer(
            self._patience, "sbatch", *options, *self._options, *wanted, script=text
        )


def _named(name: str) -> str:
    if not NAME.fullmatch(name):
        raise OrderRefused(
            f"{name!r} is not a name that Slurm takes",
            "Give letters, digits, dots, hyphens and underscores, at most 200.",
        )
    return name
