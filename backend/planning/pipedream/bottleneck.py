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

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import lcm

from backend.cluster.cluster import Cluster
from backend.planning.cost import cut_seconds, stage_seconds
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile

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
        if not top or _part(_pairs(before, after), sizes[top - 1]):  # often the first pair does
            return float(cut_seconds(size, self.cluster.slowest[top - 1]))
        pairs = list(_pairs(before, after))
        climbs = next((n for n in range(top - 1, 0, -1) if _part(pairs, sizes[n - 1])), 0)
        blocks = Counter(pair[0] // sizes[climbs] for pair in pairs)
        share = max(blocks.values()) / len(pairs)
        return float(cut_seconds(size, self.cluster.slowest[climbs - 1])) * share

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
        return self._seconds[stage.stop] - self._seconds[stage.first]

    def _weights(self, stage: Stage) -> float:
        return self._parameters[stage.stop] - self._parameters[stage.first]

    @cached_property
    def _seconds(self) -> list[float]:
        layers = self.profile.layers
        return list(accumulate((layer.compute_and_update for layer in layers), initial=0.0))

    @cached_property
    def _parameters(self) -> list[float]:
        return list(accumulate((x.parameter_bytes for x in self.profile.layers), initial=0))


def _at_home(run: Sequence[Stage], block: int, home: int) -> tuple[Stage, ...]:
    """The copy of a pipeline that stands in machine `home`."""
    return tuple(
        Stage(s.first, s.stop, tuple(d for d in s.devices if d // block == home)) for s in run
    )


def _part(pairs: Iterable[tuple[int, int]], size: int) -> bool:
    """Whether the two of a pair stand in different groups of `size` devices."""
    return any(a // size != b // size for a, b in pairs)


def _pairs(before: Stage, after: Stage) -> Iterator[tuple[int, int]]:
    """Which replicas hand microbatches to each other, one round of round robin."""
    rounds = lcm(before.replicas, after.replicas)
    if rounds > MOST_PAIRS:
        yield min(*before.devices, *after.devices), max(*before.devices, *after.devices)
        return
    for k in range(rounds):
        yield before.devices[k % before.replicas], after.devices[k % after.replicas]


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
