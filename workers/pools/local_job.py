"""A job of `LocalEngine`, as it stands in the engine's folder."""

import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from backend.codec import from_json, to_json
from backend.runs.pools.job import JobOrder, JobState
from workers.pid import Pid

KEPT = 3600.0
"""Seconds for which an ended job is told of."""
TAIL = 4000
FILE = "job.json"


@dataclass(frozen=True, slots=True)
class Slot:
    """Devices of a machine."""

    machine: int
    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LocalJob:
    """Times in Unix seconds, 0 = not yet. `asked`: to end; `warned`: that it will have to."""

    order: JobOrder
    state: JobState
    submitted: float
    started: float = 0.0
    asked: float = 0.0
    ended: float = 0.0
    warned: bool = False
    slots: tuple[Slot, ...] = ()
    processes: tuple[Pid, ...] = ()

    @property
    def is_alive(self) -> bool:
        return any(process.is_alive for process in self.processes)

    def tell(self, number: signal.Signals) -> None:
        """The agents; by force they end with all that they started in their sessions."""
        for process in self.processes:
            if process.is_alive:
                with suppress(ProcessLookupError):
                    if number is signal.SIGKILL:
                        os.killpg(process.number, number)
                    else:
                        os.kill(process.number, number)

    def forget(self, folder: Path) -> None:
        shutil.rmtree(folder / self.order.name, ignore_errors=True)


def written(folder: Path, job: LocalJob) -> LocalJob:
    """Note it at once or not at all; the job."""
    place = folder / job.order.name
    place.mkdir(exist_ok=True)
    draft = place / f"{FILE}.new"
    draft.write_bytes(to_json(LocalJob, job))
    draft.replace(place / FILE)
    return job


def jobs_in(folder: Path) -> Mapping[str, LocalJob]:
    """By name."""
    found: dict[str, LocalJob] = {}
    for file in sorted(folder.glob(f"*/{FILE}")):
        with suppress(FileNotFoundError):
            found[file.parent.name] = from_json(LocalJob, file.read_bytes())
    return found
