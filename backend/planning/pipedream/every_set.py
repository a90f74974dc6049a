"""The best plan on few devices, equal or not: every set of them for every stage.

A table says how fast the stages behind a cut can be, by the devices that they have together and
those of the stage at the cut. (On one level all links are alike, and that stage's need not be told
from the others.) What the cost model asks of a whole pipeline is not in the table: the order of
replicas is taken at its best for each cut by itself, and of pipelines that are copied over machines
each stage pays its own ring, which is never more. So no plan is faster than the table says. Plans
are drawn from it, the fastest first (`drawn_plans`).
"""

from dataclasses import dataclass, field
from math import inf
from operator import add

import numpy as np

from backend.planning.cost import ROUNDING, Floats, stage_seconds
from backend.planning.pipedream.alike_devices import AlikeDevices, Counts
from backend.planning.pipedream.plan_space import PlanSpace

State = tuple[Counts, Counts]
"""The devices behind a cut, and those of them that have the stage at it (none on one level)."""
EACH, ENTRY = 30.0, 2e-3
"""Work per set in front of a state, and per pair of cuts then."""


@dataclass
class EverySet:
    """One question: plans faster than `limit` seconds.

    table   per state, and per ideal that is still to be placed, the least seconds; infinite where
            they are not within the limit
    """

    space: PlanSpace
    devices: AlikeDevices
    limit: float
    table: dict[State, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ideals, count = self.space.ideals, len(self.space.ideals)
        places = np.arange(count)
        self.nested = np.zeros((count, count), dtype=np.bool_)
        for stop in range(1, count):
            self.nested[:stop, stop] = ideals.nested_in(places[:stop], stop)
        self.compute = ideals.compute - ideals.compute[:, None]
        self.weights = ideals.parameters - ideals.parameters[:, None]
        self.nothing: Counts = (0,) * len(self.devices.every)
        self._stages: dict[tuple[float, ...], Floats] = {}
        self._least: dict[tuple[int, float], Floats] = {}

    @property
    def tells_stages(self) -> bool:
        return len(self.devices.cluster.levels) > 1

    def fill(self) -> None:
        """Raises `WorkSpent`."""
        self.table[self.nothing, self.nothing] = np.full(len(self.compute), inf)
        self.table[self.nothing, self.nothing][-1] = 0.0
        of_size: dict[int, list[State]] = {0: [(self.nothing, self.nothing)]}
        for size in range(sum(self.devices.every)):
            for state in of_size.pop(size, ()):
                for found in self._extended(state):
                    of_size.setdefault(sum(found[0]), []).append(found)

    def _extended(self, state: State) -> list[State]:
        """The states that are new with a stage in front of this one."""
        behind, at = state
        seconds, found = self.table[state], []
        free = self.devices.without(behind)
        for chosen in self.devices.chosen(free, behind, at):
            self.space.work.spend(EACH + ENTRY * self.compute.size)
            stages = self.stages(chosen, sum(behind))
            there = np.maximum(seconds, self.cuts(at, chosen))
            stops = np.flatnonzero(there < self.limit)
            if not len(stops):
                continue
            fastest = np.maximum(stages[:, stops], there[stops]).min(axis=1)
            if new := self._noted(behind, chosen, fastest):
                found.append(new)
        return found

    def _noted(self, behind: Counts, chosen: Counts, seconds: Floats) -> State | None:
        """The state that has them, if it is new."""
        every = tuple(map(add, behind, chosen))
        rest = self.devices.speed(self.devices.without(every)) * (1 + ROUNDING)
        seconds[self.compute[0] / self.limit > rest] = inf
        if not (seconds < inf).any():
            return None
        state = self.state(every, chosen)
        known = self.table.get(state)
        self.table[state] = seconds if known is None else np.minimum(known, seconds)
        return state if known is None else None

    def state(self, behind: Counts, at: Counts) -> State:
        pairs = list(zip(behind, at if self.tells_stages else self.nothing, strict=True))
        counts, stage = zip(*self.devices.canonical(pairs), strict=True)
        return counts, stage

    def cuts(self, behind: Counts, front: Counts) -> Floats:
        """Seconds of each cut between stages on those devices; 0 behind the model's end."""
        exchanged = self.space.ideals.exchanged_bytes
        if self.tells_stages and any(behind):
            return np.asarray(exchanged * self.devices.cut_rate(behind, front))
        return np.asarray(exchanged / self.devices.cluster.slowest[0])

    def stages(self, chosen: Counts, behind: int) -> Floats:
        """Seconds of each stage [first, stop] on the chosen devices with so many behind; infinite
        where they are not within the limit, or do not fit."""
        devices, replicas = self.devices, sum(chosen)
        level, memory = max(devices.span(chosen) - 1, 0), devices.memory(chosen)
        key = (devices.pace(chosen), replicas, level, memory, behind if self.space.memory else 0)
        if key not in self._stages:
            bandwidth, overlap = devices.cluster.slowest[level], self.space.overlap
            inner = self.compute / devices.pace(chosen)
            seconds = stage_seconds(inner, self.weights, replicas, bandwidth, overlap)
            within = self.nested & (seconds < self.limit)
            if self.space.memory:
                within &= self._fewest(behind, memory) <= replicas
            self._stages[key] = np.where(within, seconds, inf)
        return self._stages[key]

    def _fewest(self, behind: int, memory: float) -> Floats:
        """Replicas without which no stage fits on devices of so much memory."""
        key = behind, memory
        if key not in self._least:
            space, count = self.space, len(self.compute)
            rule = space.memory_on(memory)
            least = np.full((count, count), inf)
            for stop in range(1, count):
                firsts = np.arange(stop)
                bounds = space.bounds(behind)
                least[:stop, stop] = rule.fewest_replicas(space.ideals, firsts, stop, bounds)
            self._least[key] = least
        return self._least[key]
