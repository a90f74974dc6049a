"""The rank processes of one attempt: started in their sandbox, polled, ended."""

import os
from collections.abc import Sequence
from pathlib import Path

from backend.runs.job import Job
from backend.sandbox_level import SandboxLevel
from workers.sandbox.cell import GRACE, Cell, Order
from workers.sandbox.limits import Limits
from workers.supervisor import orphans, processes
from workers.supervisor.environment import rank_environment
from workers.supervisor.lines import Lines
from workers.supervisor.place import Place
from workers.supervisor.preparation import room_of


class Ranks:
    """The processes of a job that have their `place` here; they read the same job file. `state`
    is the state directory, which they do not see."""

    def __init__(
        self,
        job: Job,
        command: Sequence[str],
        place: Place,
        state: Path,
        limits: Limits,
        level: SandboxLevel,
        num_gpus: int = 0,
    ) -> None:
        self._room = room_of(job, state)
        self.lines = Lines()
        self._ranks = place.ranks
        wrapped = level is SandboxLevel.BUBBLEWRAP
        environments = tuple(
            rank_environment(index, place, job.world_size, self._room.work, num_gpus, wrapped)
            for index in range(len(place.ranks))
        )
        order = Order(tuple(command), environments, limits, num_gpus > 0, place.hosts > 1)
        self._cell = Cell(self._room, order, level)
        try:
            for number, pipe in enumerate(self._cell.outputs):
                self.lines.listen(place.ranks[number // 2], pipe)
            self._remember()
        except OSError:
            self.end()
            raise

    def _remember(self) -> None:
        agent, cell = orphans.Pid.of(os.getpid()), orphans.Pid.of(self._cell.pid)
        orphans.remember(self._room.folder, agent, (cell,))

    @property
    def outermost(self) -> int:
        """The process from which all others of the run descend."""
        return self._cell.pid

    def exits(self) -> dict[int, int]:
        """Exit codes by rank of those that have ended (-9: killed by signal 9). Raises
        `SandboxFailed`."""
        return {self._ranks[index]: code for index, code in self._cell.exits().items()}

    def kill(self) -> None:
        """End all processes of the attempt at once; from any thread, and before `end`."""
        processes.end(self._room.folder, {self._cell.pid}, grace=0)

    def end(self, grace: float = GRACE) -> list[int]:
        """End all processes of the attempt, grandchildren included; return the pids that
        would not go. May be called twice."""
        self._cell.end(grace)
        left = processes.end(self._room.folder, {self._cell.pid}, grace=0)
        if not left:
            orphans.forget(self._room.folder)
        return left
