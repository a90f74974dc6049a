"""Seconds per minibatch of a partition on its real devices, by PipeDream's cost model.

The one judge of all plans: those of our planners, of people and of others. Three rules carry
the paper's formulas (backend.planning.cost) to any placement:

    stage   a ring over its devices runs at the slowest link among the levels that they span,
            and the slowest device sets the pace
    cut     every microbatch is charged at the slowest link that the cut crosses; machines that
            do not reach each other carry only their own share
    copies  a pipeline that stands in m machines alike is the paper's T^k: one machine's
            pipeline at 1/m, beside the ring of all its weights over the m machines

Not counted, as in the paper: latency, links shared by neighbouring stages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.cluster.cluster import Cluster
from backend.planning.cost import cut_seconds, stage_seconds
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile

Ints = NDArray[np.int64]
MOST_PAIRS = 100_000
"""Pairs of replicas that are looked at one by one; where round robin makes more of them the
whole cut is charged at the slowest level that its devices span."""


def bottleneck(
    profile: Profile, cluster: Cluster, partition: Partition, overlap: bool = True
) -> float:
    """The longest of all stages and cuts of `partition`, in seconds per minibatch."""
    return CostModel(profile.in_order(partition.order), cluster, overlap).pipeline(partition.stages)


@dataclass(frozen=True)
class CostModel:
    """`profile` has its layers in the order in which the stages count them."""

    profile: Profile
    cluster: Cluster
    overlap: bool = True

    def pipeline(self, stages: Sequence[Stage]) -> float:
        worst = 0.0
        for run, machines, level in _runs(stages, self.cluster):
            worst = max(
                worst,
                self.copies(run, machines, level) if machines > 1 else self.stage(run[0]),
            )
        cuts = (self.cut(a, b) for a, b in pairwise(stages))
        return max(worst, *cuts, 0.0)

    def stage(self, stage: Stage) -> float:
        pace = min(self.cluster.speeds(stage.devices))
        span = self.cluster.span(stage.devices)
        bandwidth = self.cluster.slowest[max(span - 1, 0)]
        return float(
            stage_seconds(
                self._compute(stage) / pace,
                self._weights(stage),
                stage.replicas,
                bandwidth,
                self.overlap,
            )
        )

    def cut(self, before: Stage, after: Stage) -> float:
        size = self.profile.graph.exchanged_bytes[before.stop - 1]
        top = self.cluster.span((*before.devices, *after.devices))
        sizes = self.cluster.sizes
        if not top or _part(*_first_pair(before, after), sizes[top - 1]):  # often it does
            return float(cut_seconds(size, self.cluster.slowest[top - 1]))
        here, there = _pairs(before, after)
        levels = range(top, 0, -1)
        climbs = next((n for n in levels if _part(here, there, sizes[n - 1])), 0)
        seconds = float(cut_seconds(size, self.cluster.slowest[climbs - 1]))
        if climbs == top:
            return seconds
        blocks = np.bincount(here // sizes[climbs])
        return seconds * (int(blocks.max()) / len(here))

    def copies(self, run: Sequence[Stage], machines: int, level: int) -> float:
        """T^k of a pipeline on `machines` members of `level`."""
        block = self.cluster.sizes[level]
        homes = dict.fromkeys(device // block for device in run[0].devices)
        alike = list(homes)[:1] if self.cluster.is_uniform else list(homes)
        weights = sum(map(self._weights, run))
        span = self.cluster.span(run[0].devices)
        seconds = max(self.pipeline(_at_home(run, block, home)) for home in alike)
        bandwidth = self.cluster.slowest[span - 1]
        return float(stage_seconds(seconds, weights, machines, bandwidth, self.overlap))

    def _compute(self, stage: Stage) -> float:
        seconds = self.profile.seconds_in_front
        return seconds[stage.stop] - seconds[stage.first]

    def _weights(self, stage: Stage) -> float:
        parameters = self.profile.parameters_in_front
        return parameters[stage.stop] - parameters[stage.first]


def _at_home(run: Sequence[Stage], block: int, home: int) -> tuple[Stage, ...]:
    """The copy of a pipeline that stands in machine `home`."""
    return tuple(
        Stage(s.first, s.stop, tuple(d for d in s.devices if d // block == home)) for s in run
    )


def _part(here: Any, there: Any, size: int) -> bool:
    """Whether the two of a pair stand in different groups of `size` devices."""
    return bool(np.any(here // size != there // size))


def _first_pair(before: Stage, after: Stage) -> tuple[int, int]:
    """That of `_pairs`."""
    return before.devices[0], after.devices[0]


def _pairs(before: Stage, after: Stage) -> tuple[Ints, Ints]:
    """Which replicas hand microbatches to each other, one round of round robin."""
    rounds = lcm(before.replicas, after.replicas)
    every = (*before.devices, *after.devices)
    if rounds > MOST_PAIRS:
        return np.array([min(every)]), np.array([max(every)])
    turns = np.arange(rounds)
    here, there = np.array(before.devices), np.array(after.devices)
    return here[turns % len(here)], there[turns % len(there)]


def _runs(
    stages: Sequence[Stage], cluster: Cluster
) -> Iterator[tuple[tuple[Stage, ...], int, int]]:
    """Each stage alone as (stage,), 1, 0; stages that are copied together as (run, number of
    machines, level of a machine)."""
    place = 0
    while place < len(stages):
        count, machines, level = _copied(stages[place:], cluster)
        yield tuple(stages[place : place + count]), machines, level
        place += count


def _copied(stages: Sequence[Stage], cluster: Cluster) -> tuple[int, int, int]:
    """How many stages from the first on stand on the same machines, alike: (1, 1, 0) for none."""
    for level in range(len(cluster.levels) - 1, 0, -1):
        block = cluster.sizes[level]
        machines = _machines(stages[0], block)
        if len(machines) < 2:
            continue
        run = 1
        while run < len(stages) and _machines(stages[run], block) == machines:
            run += 1
        if run > 1:
            return run, len(machines), level
    return 1, 1, 0


def _machines(stage: Stage, block: int) -> tuple[int, ...]:
    """The machines of `stage`, if its replicas visit them in turn; else none."""
    visited = [device // block for device in stage.devices]
    machines = tuple(dict.fromkeys(visited))
    return machines if visited == list(machines) * (len(visited) // len(machines)) else ()
