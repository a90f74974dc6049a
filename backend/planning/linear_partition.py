"""A chain of layers cut into consecutive stages: the dynamic programme of all straight planners."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backend.planning.cost import Floats

DEEPEST = 128
"""Stages of a straight pipeline at most: a longer one is hard to fill, and to plan."""
ROWS = 64
"""Entries of a table that are looked at together."""
Table = list[tuple[Floats, NDArray[np.int64]]]


def linear_partition(
    combine: np.ufunc, stages: Floats, cuts: Sequence[Floats], begun: Table | None = None
) -> Table:
    """Entry p: the least cost of layers 0..j-1 in p + 1 stages, and where the last of them starts.

    `stages[j, s]` is the cost of a stage of layers s..j-1, infinite where there is none, and
    `cuts[p][s]` that of the cut in front of layer s between stages p and p + 1; `combine` adds them
    or takes their maximum. A table that was `begun` goes on.

    A longer stage costs as much or more, and where costs are added, one more layer costs a longer
    stage as much or more. So the last stage of more layers starts as far behind or further, and of
    some entries in a row the first and the last say where the others start (Yao, 1980).
    """
    count = len(stages)
    table: Table = begun or [(stages[:, 0], np.zeros(count, dtype=np.int64))]
    for cut in cuts[len(table) - 1 :]:
        before = combine(table[-1][0], cut)
        best, starts = np.empty(count), np.zeros(count, dtype=np.int64)
        for first in range(0, count, ROWS):
            rows = slice(first, min(first + ROWS, count))
            within = _within(combine, before, stages, rows, int(starts[first - 1]))
            ways = combine(before[within], stages[rows, within])
            chosen = ways.argmin(axis=1)
            best[rows] = ways[np.arange(len(ways)), chosen]
            starts[rows] = chosen + within.start
        table = [*table, (best, starts)]
    return table


def _within(combine: np.ufunc, before: Floats, stages: Floats, rows: slice, start: int) -> slice:
    """Where the last stage of the entries `rows` may start, if that of the entry in front of them
    is at `start`. Layers without cost are no reason to start behind them."""
    if not rows.start:
        return slice(0, rows.stop)
    low, last = start, stages[rows.stop - 1]
    while low and last[low - 1] == last[low]:
        low -= 1
    high = low + int(combine(before[low : rows.stop], last[low : rows.stop]).argmin()) + 1
    while high < rows.stop and last[high] == last[high - 1]:
        high += 1
    return slice(low, high)


def stops(table: Table, count: int) -> list[int]:
    """Where each of `count` stages of the cheapest partition ends."""
    found = [len(table[0][0]) - 1]
    for _, starts in table[count - 1 : 0 : -1]:
        found.append(int(starts[found[-1]]))
    return found[::-1]
