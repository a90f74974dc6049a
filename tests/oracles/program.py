"""A program as lists of actions: what tests read, change and hold the columns against."""

from dataclasses import dataclass

from backend.pipeline.actions import Action
from backend.pipeline.program import Program as Columns
from backend.pipeline.shape import Shape


@dataclass(frozen=True, slots=True)
class Program:
    """`ranks[r]` is the action list of rank r. Actions are named by (rank, index).

    `schedule` is the catalog name that wrote it, `shape` what it was written for.
    """

    schedule: str
    shape: Shape
    ranks: tuple[tuple[Action, ...], ...]

    @property
    def num_actions(self) -> int:
        return sum(len(actions) for actions in self.ranks)

    def pack(self) -> Columns:
        """The same in columns."""
        return Columns.of(self.schedule, self.shape, self.ranks)


def unpack(program: Columns) -> Program:
    """The lists of a program in columns."""
    return Program(program.schedule, program.shape, program.ranks)
