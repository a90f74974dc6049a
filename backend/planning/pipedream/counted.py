"""Stages that were counted and not placed yet: copies of pipelines, and what reaches a cut."""

from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from backend.planning.cost import Floats

Ints = NDArray[np.int64]
FEW_COPIES = 32
"""Up to so many each number of copies is thought of, of more some that stand for those up to the
next: with the devices of the fewest and the time of the most."""
COARSER = 1.1
LEAST_JOINED = 2
"""Stages on each machine that copies have, of one device at least."""


@dataclass(frozen=True, slots=True)
class CountedStage:
    """A stage between two ideals, on so many devices anywhere."""

    first: int
    stop: int
    replicas: int


@dataclass(frozen=True, slots=True)
class Joined:
    """Stages in `copies` that are each within a machine; one stage alone is anywhere, as 0."""

    copies: int
    shares: tuple[CountedStage, ...]


@dataclass
class FewestBehind:
    """Per ideal, and per devices of a copy that its machine holds already, the fewest devices
    behind; and from which step they come."""

    fewest: Floats
    origin: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.origin = np.full(self.fewest.shape, -1, dtype=np.int64)

    def note(self, at: Ints, behind: Floats, steps: Ints | int) -> None:
        """Keep `behind` where they are fewer, of equal ones of several steps those of the first;
        `at` counts through both axes."""
        fewest, origin = self.fewest.reshape(-1), self.origin.reshape(-1)
        better = behind < fewest[at]
        if not better.any():
            return
        at, behind, steps = at[better], behind[better], np.broadcast_to(steps, at.shape)[better]
        np.minimum.at(fewest, at, behind)
        first = np.flatnonzero(behind == fewest[at])[::-1]  # of equal places the last one stays
        origin[at[first]] = steps[first]


def numbers_of_copies(machines: int, block: int) -> list[tuple[int, int]]:
    """The fewest and the most of each number of copies that is thought of, one and then the largest
    first: up to as many as there are machines, times the smallest pipelines that are in each."""
    most = machines * (block // LEAST_JOINED)
    starts = list(range(1, min(FEW_COPIES, most) + 1))
    starts += accumulate(range(64), lambda at, _: int(at * COARSER) + 1, initial=FEW_COPIES + 1)
    starts = [start for start in starts if start <= most] or [1]
    ends = [*(start - 1 for start in starts[1:]), max(most, 1)]
    one, *others = zip(starts, ends, strict=True)
    return [one, *reversed(others)]
