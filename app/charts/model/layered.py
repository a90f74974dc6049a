"""A drawing of a graph in rows: from producers down to consumers, nothing on top of another.

After K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system
structures" (1981): rows by the longest path, orders within them by the neighbours' middle,
places as near to the neighbours as the widths allow.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean

Size = tuple[float, float]
Point = tuple[float, float]
Edge = tuple[int, int]

GAP, PASSING, BETWEEN = 22.0, 12.0, 30.0
"""Pixels: between neighbours, the width of a line that passes a row, between rows."""
SWEEPS = 6


@dataclass(frozen=True, slots=True)
class Drawing:
    """`places` are the boxes' left upper corners, `routes` the points of each edge, from the
    lower side of its producer to the upper side of its consumer."""

    places: tuple[Point, ...]
    routes: dict[Edge, tuple[Point, ...]]
    width: float
    height: float


@dataclass(slots=True)
class _Knot:
    """A box, or a place where a line passes a row."""

    row: int
    width: float
    above: list[int]
    below: list[int]
    x: float = 0.0


def layered(sizes: Sequence[Size], edges: Iterable[Edge]) -> Drawing:
    """Boxes of these (width, height), whose numbers are a topological order. The lines of one
    producer run together until their ways part."""
    edges = sorted(set(edges))
    knots = _boxes(sizes, edges)
    ways = _ways(knots, edges)
    rows = _rows(knots)
    _order(knots, rows)
    _place(knots, rows)
    heights = [max((sizes[k][1] for k in row if k < len(sizes)), default=0.0) for row in rows]
    tops = [0.0, *accumulate(height + BETWEEN for height in heights)]
    left = min((k.x - k.width / 2 for k in knots), default=0.0)
    width = max((k.x + k.width / 2 for k in knots), default=0.0) - left
    places = []
    for knot, (wide, high) in zip(knots, sizes, strict=False):
        slack = (heights[knot.row] - high) / 2
        places.append((knot.x - left - wide / 2, tops[knot.row] + slack))
    routes = {}
    for (producer, consumer), way in ways.items():
        x, y = places[producer]
        points = [(x + sizes[producer][0] / 2, y + sizes[producer][1])]
        for k in way:
            top, x = tops[knots[k].row], knots[k].x - left
            points += [(x, top), (x, top + heights[knots[k].row])]
        x, y = places[consumer]
        routes[producer, consumer] = (*points, (x + sizes[consumer][0] / 2, y))
    return Drawing(tuple(places), routes, width, max(0.0, tops[-1] - BETWEEN))


def _boxes(sizes: Sequence[Size], edges: Sequence[Edge]) -> list[_Knot]:
    rows = [0] * len(sizes)
    for producer, consumer in edges:
        rows[consumer] = max(rows[consumer], rows[producer] + 1)
    fed = {consumer for _, consumer in edges}
    readers: dict[int, list[int]] = defaultdict(list)
    for producer, consumer in edges:
        readers[producer].append(rows[consumer])
    for box in readers.keys() - fed:  # what depends on nothing stands where it is needed
        rows[box] = min(readers[box]) - 1
    return [_Knot(row, width, [], []) for row, (width, _) in zip(rows, sizes, strict=True)]


def _ways(knots: list[_Knot], edges: Sequence[Edge]) -> dict[Edge, list[int]]:
    """The knots that each edge passes, made here: one per producer and row."""
    ways: dict[Edge, list[int]] = {}
    passing: dict[tuple[int, int], int] = {}
    for producer, consumer in edges:
        way: list[int] = []
        for row in range(knots[producer].row + 1, knots[consumer].row):
            if (producer, row) not in passing:
                passing[producer, row] = len(knots)
                knots.append(_Knot(row, PASSING, [], []))
            way.append(passing[producer, row])
        ways[producer, consumer] = way
        for upper, lower in pairwise([producer, *way, consumer]):
            if lower not in knots[upper].below:
                knots[upper].below.append(lower)
                knots[lower].above.append(upper)
    return ways


def _rows(knots: Sequence[_Knot]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(max((k.row for k in knots), default=-1) + 1)]
    for index, knot in enumerate(knots):
        rows[knot.row].append(index)
    return rows


def _order(knots: Sequence[_Knot], rows: list[list[int]]) -> None:
    """Down and up: each row by the middle of the neighbours in the row before."""
    spot = {k: float(i) for row in rows for i, k in enumerate(row)}
    for sweep in range(SWEEPS):
        is_down = sweep % 2 == 0
        for row in rows if is_down else reversed(rows):
            for k in row:
                near = knots[k].above if is_down else knots[k].below
                spot[k] = fmean(spot[n] for n in near) if near else spot[k]
            row.sort(key=spot.__getitem__)
            spot.update((k, i - (len(row) - 1) / 2) for i, k in enumerate(row))


def _place(knots: Sequence[_Knot], rows: Sequence[Sequence[int]]) -> None:
    for row in rows:
        _spread(knots, row, [0.0] * len(row))
    for sweep in range(SWEEPS):
        is_down = sweep % 2 == 0
        for row in rows if is_down else reversed(rows):
            wanted = []
            for k in row:
                near = knots[k].above if is_down else knots[k].below
                wanted.append(fmean(knots[n].x for n in near) if near else knots[k].x)
            _spread(knots, row, wanted)


def _spread(knots: Sequence[_Knot], row: Sequence[int], wanted: Sequence[float]) -> None:
    """The places nearest to `wanted` (least squares) that keep order and distance: neighbours
    that would overlap are merged into blocks (pool adjacent violators, Ayer et al. 1955)."""
    offsets = [0.0]
    for one, other in pairwise(row):
        offsets.append(offsets[-1] + (knots[one].width + knots[other].width) / 2 + GAP)
    blocks: list[tuple[float, int]] = []
    for goal in (want - offset for want, offset in zip(wanted, offsets, strict=True)):
        block = goal, 1
        while blocks and blocks[-1][0] > block[0]:
            (mean, count), (own, size) = blocks.pop(), block
            block = (mean * count + own * size) / (count + size), count + size
        blocks.append(block)
    means = (mean for mean, count in blocks for _ in range(count))
    for k, offset, mean in zip(row, offsets, means, strict=False):
        knots[k].x = mean + offset
