"""The program: what every rank does, in order. Plain data with many readers."""

from dataclasses import dataclass

from backend.pipeline.actions import Action
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
