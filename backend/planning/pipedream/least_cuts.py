"""What every cut of a graph costs at least, however many there are: found by flows, not by listing.

Ideals are sorted into windows by the compute that they hold. No ideal of a window lacks a layer
that all ideals with so much compute hold, and none has one that takes more: between the two lies a
small part of the graph, whose cheapest cut is a flow (Ford and Fulkerson, 1956; that ideals are
closures of a graph: Picard, Management Science 1976).
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

import numpy as np

from backend.planning.cost import Floats
from backend.planning.pipedream.candidates import Cells
from backend.planning.pipedream.decomposition import GRAIN
from backend.planning.pipedream.ideals import Bools, Ideals, own_order, smallest_first
from backend.profiles.profile import Profile

WINDOWS = 400
"""Into so many parts the model's compute is cut: a bound is off by as much as one holds."""


@dataclass(frozen=True)
class LeastCuts:
    """cells   every ideal of the graph, in cells of like compute: no plan escapes them
    ideals  the own order's, and an ideal with the fewest bytes of each cell
    """

    cells: Cells
    ideals: Ideals


def least_cuts(profile: Profile, windows: int = WINDOWS) -> LeastCuts:
    """Those of `profile`, with as many cells as windows and one for each end."""
    reach = _Reach(profile)
    edges = np.linspace(0.0, reach.sums[0], windows + 1)
    known: dict[bytes, _Window] = {}
    nothing, last = np.zeros(3), reach.sums
    rows = [(nothing, nothing, 0.0)]
    for number, (low, high) in enumerate(pairwise(edges)):
        inside, free = reach.window(number / windows, (number + 1) / windows)
        key = np.packbits([inside, free]).tobytes()
        if key not in known:
            known[key] = reach.between(inside, free)
        found = known[key]
        least, most = np.maximum(found.least, (low, 0, 0)), np.minimum(found.most, (high, inf, inf))
        rows.append((least, most, found.exchanged_bytes))
    rows.append((last, last, 0.0))
    least, most, alive = (np.array(column) for column in zip(*rows, strict=True))
    members = np.array([found.members for found in known.values()])
    every = smallest_first(np.concatenate([own_order(len(profile.layers)), members]))
    compute, parameters, outputs = least.T
    cells = Cells(profile, compute, parameters, outputs, alive, most.T)
    return LeastCuts(cells, Ideals(profile, every, False))


@dataclass(frozen=True, slots=True)
class _Window:
    """The least and the most that an ideal of a window holds (seconds, parameter bytes, output
    bytes), the fewest bytes alive across its cut, there and back, and one where they are."""

    least: Floats
    most: Floats
    exchanged_bytes: float
    members: Bools


class _Reach:
    """Of each layer, the compute of what it needs (`before`) and of what needs it (`behind`), near
    and far and with its own: in whole grains, so that no sum of fewer layers is larger."""

    def __init__(self, profile: Profile) -> None:
        count, self.graph = len(profile.layers), profile.graph
        self.costs = np.array(
            [(x.compute_and_update, x.parameter_bytes, x.activation_bytes) for x in profile.layers],
            dtype=np.float64,
        )
        self.sums = self.costs.sum(axis=0)
        grains = np.floor(self.costs[:, 0] / max(self.sums[0], 1e-300) * GRAIN)
        self.total = grains.sum()
        needs = np.eye(count, dtype=np.bool_)
        for before, after in sorted(profile.graph.edges, key=lambda edge: edge[1]):
            needs[after] |= needs[before]
        self.before = needs @ grains
        self.behind = needs.T @ grains

    def window(self, low: float, high: float) -> tuple[Bools, Bools]:
        """The layers that all ideals with that share of the compute hold, and those that some
        do."""
        slack = len(self.costs)
        inside = self.total - self.behind < low * GRAIN - slack
        return inside, ~inside & (self.before <= high * GRAIN + slack)

    def between(self, inside: Bools, free: Bools) -> _Window:
        """The ideals of `inside` and some of `free`."""
        least = self.costs[inside].sum(axis=0)
        flow = self._flow(inside, free)
        alive = flow.most(0, 1)
        members = inside.copy()
        members[np.flatnonzero(free)] = np.array(flow.reached[2 : 2 + int(free.sum())], np.bool_)
        return _Window(least, least + self.costs[free].sum(axis=0), alive, members)

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
