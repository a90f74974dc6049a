"""What every cut of a graph costs at least, however many there are: found by flows, not by listing.

Ideals are sorted into windows by the compute that they hold, or by the outputs. No ideal of a
window lacks a layer that all ideals with so much hold, and none has one that takes more: between
the two lies a small part of the graph, whose cheapest cut is a flow (Ford and Fulkerson, 1956; that
ideals are closures of a graph: Picard, Management Science 1976). What they hold of the other costs
lies between the cheapest and the dearest parts of layers that fill the window.
"""

from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from math import inf

import numpy as np

from backend.planning.cost import Floats
from backend.planning.pipedream.candidates import Cells
from backend.planning.pipedream.decomposition import GRAIN
from backend.planning.pipedream.ideals import Bools, Ideals, own_order, smallest_first
from backend.profiles.profile import ModelGraph, Profile

WINDOWS = 400
"""Into so many parts the model is cut: a bound is off by as much as one holds."""
COMPUTE, OUTPUTS = 0, 2
"""Of the costs of a layer: seconds, parameter bytes, output bytes."""
KEPT = 4
"""Graphs whose cells are remembered: a search plans the same one several times."""
SLACK = 1e-6
"""Of a window's sums, for their rounding."""


@dataclass(frozen=True)
class LeastCuts:
    """cells   every ideal of the graph, in cells of like costs: no plan escapes them
    ideals  the own order's, and an ideal with the fewest bytes of each cell
    """

    cells: Cells
    ideals: Ideals


def least_cuts(profile: Profile, windows: int = WINDOWS, by: int = COMPUTE) -> LeastCuts:
    """Those of `profile`, with as many cells as windows (`by` what they hold of that cost) and one
    for each end."""
    (least, most, alive), members = _cells(profile.graph, windows, by)
    every = smallest_first(np.concatenate([own_order(len(profile.layers)), members]))
    compute, parameters, outputs = least.T
    cells = Cells(profile, compute, parameters, outputs, alive, most.T)
    return LeastCuts(cells, Ideals(profile, every, False))


@lru_cache(KEPT)
def _cells(graph: ModelGraph, windows: int, by: int) -> tuple[tuple[Floats, Floats, Floats], Bools]:
    """What each cell has of the costs at least and at most, its fewest bytes alive; and an ideal
    where they are the fewest, of each that has another one."""
    reach = _Reach(graph, by)
    edges = np.linspace(0.0, reach.sums[by], windows + 1)
    known: dict[bytes, _Window] = {}
    nothing, last = np.zeros(3), reach.sums
    rows = [(nothing, nothing, 0.0)]
    for number, (low, high) in enumerate(pairwise(edges)):
        inside, free = reach.window(number / windows, (number + 1) / windows)
        key = np.packbits([inside, free]).tobytes()
        if key not in known:
            known[key] = reach.between(inside, free)
        found = known[key]
        rows.append((*found.within(float(low), float(high), by), found.exchanged_bytes))
    rows.append((last, last, 0.0))
    least, most, alive = (np.array(column) for column in zip(*rows, strict=True))
    return (least, most, alive), np.array([found.members for found in known.values()])


@dataclass(frozen=True)
class _Window:
    """Ideals of some layers and any of the free ones.

    held      costs of the layers that all have (seconds, parameter bytes, output bytes)
    free      sums of costs of those that some have
    cheapest  per cost, what parts of the free layers have of it at least that have so much of the
              cost which the windows go by (`_cheapest`)
    exchanged_bytes   the fewest bytes alive across a cut, there and back; `members`: one where they
              are
    """

    held: Floats
    free: Floats
    cheapest: tuple[tuple[Floats, Floats], ...]
    exchanged_bytes: float
    members: Bools

    def within(self, low: float, high: float, by: int) -> tuple[Floats, Floats]:
        """The least and the most that those hold which hold `low` to `high` of one cost."""
        added, missing = low - self.held[by], self.held[by] + self.free[by] - high
        least, most = self.held.copy(), self.held + self.free
        for cost, (filled, cheapest) in enumerate(self.cheapest):
            slack = SLACK * self.free[cost]
            least[cost] += max(np.interp(added, filled, cheapest) - slack, 0.0)
            most[cost] -= max(np.interp(missing, filled, cheapest) - slack, 0.0)
        least[by], most[by] = max(self.held[by], low), min(self.held[by] + self.free[by], high)
        return least, most


def _cheapest(filled: Floats, cost: Floats) -> tuple[Floats, Floats]:
    """The least cost of parts of layers that fill so much, as two rising rows: those with the least
    cost for what they fill come first."""
    some = filled > 0
    order = np.argsort(cost[some] / filled[some], kind="stable")
    first, second = (np.cumsum(row[some][order]) for row in (filled, cost))
    return np.concatenate([[0.0], first]), np.concatenate([[0.0], second])


class _Reach:
    """Of each layer, what it needs (`before`) and what needs it (`behind`) has of one cost, near
    and far and with its own: in whole grains, so that no sum of fewer layers is larger."""

    def __init__(self, graph: ModelGraph, by: int) -> None:
        count, self.graph, self.by = len(graph.layers), graph, by
        self.costs = np.array(
            [(x.compute_and_update, x.parameter_bytes, x.activation_bytes) for x in graph.layers],
            dtype=np.float64,
        )
        self.sums = self.costs.sum(axis=0)
        grains = np.floor(self.costs[:, by] / max(self.sums[by], 1e-300) * GRAIN)
        self.total = grains.sum()
        needs = np.eye(count, dtype=np.bool_)
        for before, after in sorted(graph.edges, key=lambda edge: edge[1]):
            needs[after] |= needs[before]
        self.before = needs @ grains
        self.behind = needs.T @ grains

    def window(self, low: float, high: float) -> tuple[Bools, Bools]:
        """The layers that all ideals with that share of the cost hold, and those that some do."""
        slack = len(self.costs)
        inside = self.total - self.behind < low * GRAIN - slack
        return inside, ~inside & (self.before <= high * GRAIN + slack)

    def between(self, inside: Bools, free: Bools) -> _Window:
        """The ideals of `inside` and some of `free`."""
        flow = self._flow(inside, free)
        alive = flow.most(0, 1)
        members = inside.copy()
        members[np.flatnonzero(free)] = np.array(flow.reached[2 : 2 + int(free.sum())], np.bool_)
        held, costs = self.costs[inside].sum(axis=0), self.costs[free]
        cheapest = tuple(_cheapest(costs[:, self.by], costs[:, cost]) for cost in range(3))
        return _Window(held, costs.sum(axis=0), cheapest, alive, members)

    def _flow(self, inside: Bools, free: Bools) -> "_Flow":
        """From what all hold (0) to what none holds (1), through a node for each of `free`."""
        number = {layer: place for place, layer in enumerate(np.flatnonzero(free).tolist(), 2)}

        def node(layer: int) -> int:
            return number.get(layer, 0 if inside[layer] else 1)

        flow = _Flow(2 + len(number))
        for before, after in self.graph.edges:
            if node(after) > 1 and node(before) > 1:
                flow.join(node(after), node(before), inf)
        for tensor in self.graph.tensors:
            made, readers = node(tensor.producer), {node(reader) for reader in tensor.readers} - {0}
            if made == 1 or not readers or not tensor.exchanged_bytes:
                continue
            if len(readers) == 1:
                flow.join(made, readers.pop(), float(tensor.exchanged_bytes))
                continue
            bundle = flow.add()
            flow.join(made, bundle, float(tensor.exchanged_bytes))
            for reader in readers:
                flow.join(bundle, reader, inf)
        return flow


@dataclass
class _Flow:
    """The largest flow from one node to another (Dinic, 1970). `reached` afterwards: which nodes
    more could flow to, the side of the cut that is full."""

    count: int
    heads: list[int] = field(default_factory=list)
    room: list[float] = field(default_factory=list)
    reached: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.out: list[list[int]] = [[] for _ in range(self.count)]

    def add(self) -> int:
        self.out.append([])
        return len(self.out) - 1

    def join(self, source: int, to: int, room: float) -> None:
        for a, b, size in ((source, to, room), (to, source, 0.0)):
            self.out[a].append(len(self.heads))
            self.heads.append(b)
            self.room.append(size)

    def most(self, source: int, to: int) -> float:
        found = 0.0
        while True:
            level = self._levels(source, to)
            if level[to] < 0:
                self.reached = [each >= 0 for each in level]
                return found
            found += self._blocked(source, to, level)

    def _levels(self, source: int, to: int) -> list[int]:
        level = [-1] * len(self.out)
        level[source] = 0
        queue = deque((source,))
        while queue and level[to] < 0:
            node = queue.popleft()
            for edge in self.out[node]:
                head = self.heads[edge]
                if level[head] < 0 and self.room[edge] > 0:
                    level[head] = level[node] + 1
                    queue.append(head)
        return level

    def _blocked(self, source: int, to: int, level: list[int]) -> float:
        """What goes over the shortest ways until each has an edge without room."""
        following = [0] * len(self.out)
        way: list[int] = []
        node, found = source, 0.0
        while True:
            if node == to:
                size = min(self.room[edge] for edge in way)
                for edge in way:
                    self.room[edge] -= size
                    self.room[edge ^ 1] += size
                found += size
                full = next(n for n, edge in enumerate(way) if self.room[edge] <= 0)
                node = self.heads[way[full] ^ 1]
                del way[full:]
            out = self.out[node]
            while following[node] < len(out):
                edge = out[following[node]]
                if self.room[edge] > 0 and level[self.heads[edge]] == level[node] + 1:
                    break
                following[node] += 1
            else:
                if node == source:
                    return found
                node = self.heads[way.pop() ^ 1]
                following[node] += 1
                continue
            way.append(edge)
            node = self.heads[edge]
