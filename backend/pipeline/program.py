"""The program: what every rank does, in order. Columns with many readers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from backend.pipeline.actions import Action
from backend.pipeline.clock.waits import Waits, waits
from backend.pipeline.kinds import Ints
from backend.pipeline.rows import Rows
from backend.pipeline.shape import Shape


@dataclass(frozen=True, eq=False)
class Program:
    """Rows `bounds[r]` up to `bounds[r + 1]` are what rank r does, in order.

    `schedule` is the catalog name that wrote it, `shape` what it was written for.
    """

    schedule: str
    shape: Shape
    bounds: Ints
    rows: Rows

    @staticmethod
    def of(schedule: str, shape: Shape, ranks: Sequence[Sequence[Action]]) -> "Program":
        """The program of any lists of actions, one per rank, sound or not."""
        bounds = np.cumsum([0, *map(len, ranks)])
        return Program(schedule, shape, bounds, Rows.of(a for own in ranks for a in own))

    @property
    def num_actions(self) -> int:
        return len(self.rows)

    @property
    def num_ranks(self) -> int:
        """Ranks that it is written for, which an unsound one may have other than its shape."""
        return len(self.bounds) - 1

    @cached_property
    def rank(self) -> Ints:
        """The rank of every row."""
        return np.repeat(np.arange(self.num_ranks), np.diff(self.bounds))

    @cached_property
    def waits(self) -> Waits:
        """What waits for what: found once, for verifying and for every simulation."""
        return waits(self)

    def part(self, rank: int) -> Rows:
        """The rows of one rank."""
        return self.rows.at(slice(self.bounds[rank], self.bounds[rank + 1]))

    def actions(self, rank: int) -> tuple[Action, ...]:
        """What one rank does, as its executor has it."""
        return tuple(self.part(rank).actions())

    @cached_property
    def ranks(self) -> tuple[tuple[Action, ...], ...]:
        """What every rank does: for messages and exports, not for long programs."""
        return tuple(map(self.actions, range(self.num_ranks)))

    def place(self, row: int) -> tuple[int, int]:
        """The rank of a row and its index there."""
        rank = int(self.rank[row])
        return rank, row - int(self.bounds[rank])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Program):
            return NotImplemented
        same = (self.schedule, self.shape) == (other.schedule, other.shape)
        return same and np.array_equal(self.bounds, other.bounds) and self.rows == other.rows
