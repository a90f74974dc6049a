"""A chain of layers cut into consecutive stages: the dynamic programme of all straight planners."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from backend.planning.cost import Floats

DEEPEST = 128
"""Stages of a straight pipeline at most: a longer one is hard to fill, and to plan."""
Table = list[tuple[Floats, NDArray[np.int64]]]


def linear_partition(
    combine: Callable[[Floats, Floats], Floats], stages: Floats, cuts: Sequence[Floats]
) -> Table:
    """Entry p: the least cost of layers 0..j-1 in p + 1 stages, and where the last of them starts.

    `stages[j, s]` is the cost of a stage of layers s..j-1 and `cuts[p][s]` that of the cut in front
    of layer s between stages p and p + 1; `combine` adds them or takes their maximum.
    """
    best, rows = stages[:, 0], np.arange(len(stages))
    table: Table = [(best, np.zeros(len(best), dtype=np.int64))]
    for cut in cuts:
        ways = combine(combine(best, cut), stages)
        starts = ways.argmin(axis=1)
        best = ways[rows, starts]
        table.append((best, starts))
    return table


def stops(table: Table, count: int) -> list[int]:
    """Where each of `count` stages of the cheapest partition ends."""
    found = [len(table[0][0]) - 1]
    for _, starts in table[count - 1 : 0 : -1]:
        found.append(int(starts[found[-1]]))
    return found[::-1]
