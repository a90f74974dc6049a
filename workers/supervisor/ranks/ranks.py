"""The rank processes of one attempt: started in their sandbox, polled, ended."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from backend.runs.run import RunError
from backend.sandbox_level import SandboxLevel
from workers.pid import Pid
from workers.sandbox.cell import GRACE, Cell, LaunchRequest
from workers.sandbox.guard import Guard
from workers.sandbox.limits import Limits
from workers.sandbox.room import Room
from workers.supervisor.ranks import orphans, processes
from workers.supervisor.ranks.environment import rank_environment
from workers.supervisor.ranks.lines import Lines
from workers.supervisor.ranks.place import Place


@dataclass(frozen=True, slots=True)
class Given:
    """What ranks have of their node: its GPUs by UUID, by the numbers of their devices, and the
    cores to which they are bound (() = any)."""

    gpus: Sequence[str] = ()
    cores: Sequence[int] = ()


NOTHING = Given()


class Ranks:
    """The processes of a job that have their `place` here, in their `room`, with what they are
    `given` of the node; what they print goes into `lines`."""

    def __init__(
        self,
        room: Room,
        command: Sequence[str],
        place: Place,
        world_size: int,
        lines: Lines,
        limits: Limits,
        level: SandboxLevel,
        given: Given = NOTHING,
    ) -> None:
        self._room = room
        self._ranks = place.ranks
        wrapped = level is SandboxLevel.BUBBLEWRAP
        environments = tuple(
            rank_environment(index, place, world_size, room.work, given.gpus, wrapped)
            for index in range(len(place.ranks))
        )
        order = LaunchRequest(
            tuple(command),
            environments,
            limits,
            bool(given.gpus),
            outside=place.hosts > 1,
            cores=tuple(given.cores),
        )
        self._cell = Cell(room, order, level)
        try:
            for number, pipe in enumerate(self._cell.outputs):
                lines.listen(place.ranks[number // 2], pipe)
            for rank, pipe in zip(place.ranks, self._cell.events, strict=True):
                lines.listen(rank, pipe, events=True)
            agent, cell = Pid.of(os.getpid()), Pid.of(self._cell.pid)
            orphans.remember(room.folder, agent, (cell,))
        except OSError:
            self.end()
            raise
        self._guard = Guard(limits, self._cell.pid, room.work, lambda: self._cell.is_out_of_memory)

    def exceeded(self, now: float) -> RunError | None:
        """The limit that the run has exceeded at `now` (monotonic seconds)."""
        return self._guard.error(now)

    def exits(self) -> dict[int, int]:
        """Exit codes by rank of those that have ended (-9: killed by signal 9). Raises
        `SandboxFailed`."""
        return {self._ranks[index]: code for index, code in self._cell.exits().items()}

    def show_stacks(self) -> None:
        """Let every rank print the stacks of its threads."""
        self._cell.show_stacks()

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
