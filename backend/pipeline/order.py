"""The computes of all ranks as columns: what a schedule orders, before anything is added."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from backend.pipeline.actions import Compute
from backend.pipeline.kinds import Bools, Ints, Kind
from backend.pipeline.rows import Rows
from backend.pipeline.shape import Shape


@dataclass(frozen=True, slots=True)
class Order:
    """The computes of all ranks, one after another: rank r's are `bounds[r]` up to
    `bounds[r + 1]`. Steps have microbatch -1."""

    bounds: Ints
    rank: Ints
    kind: Ints
    stage: Ints
    microbatch: Ints

    @staticmethod
    def of(ranks: Sequence[Iterable[Compute]]) -> "Order":
        """The columns of lists of computes, one per rank."""
        parts = [Rows.of(computes) for computes in ranks]
        lengths, rows = list(map(len, parts)), Rows.joined(parts)
        rank = np.repeat(np.arange(len(parts)), lengths)
        return Order(np.cumsum([0, *lengths]), rank, rows.kind, rows.stage, rows.microbatch)

    def steps_before(self, shape: Shape) -> Ints:
        """How many steps of its stage the rank of each row has made before it."""
        return count_before(self.kind == Kind.STEP, self.stage // shape.pipeline_size, self.bounds)


def count_before(marked: Bools, group: Ints, bounds: Ints) -> Ints:
    """Per row the marked rows before it in its part (`bounds`) and its group (0, 1, ...)."""
    total = np.zeros(len(marked), np.int64)
    for number in range(int(group.max(initial=-1)) + 1):
        own = marked & (group == number) if group.any() else marked
        count = np.concatenate(([0], np.cumsum(own)))
        before = count[:-1] - np.repeat(count[bounds[:-1]], np.diff(bounds))
        total = np.where(group == number, before, total) if number or group.any() else before
    return total
