"""PipeDream's planner: the partition with the smallest bottleneck, by dynamic programming."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from operator import mul

import numpy as np
from numpy.typing import NDArray

from backend.cluster.cluster import Cluster, Level
from backend.planning.cost import Chain, Floats, between, cut_seconds, spans, stage_seconds
from backend.planning.plan import Partition, PlanDoesNotFit, Stage
from backend.profiles.profile import Profile

MAX_WORK = 1e10
"""Stage costs compared in one call: 6e9 (429 layers on 256 devices) took 12 s and 0.5 GB of
memory on one core of a 2-core AMD EPYC machine."""
CALL = 10_000
"""Stage costs that could be compared in the time that one step of the loop takes anyway."""


def pipedream(profile: Profile, cluster: Cluster) -> Partition:
    """The partition that minimises A^L(1..N, all workers) (SOSP 2019, section 3.1).

    The graph is a chain in its topological order, so cuts are always sound. As in the paper
    every device is used, also where fewer would do, and a stage of an outer level takes whole
    members of the level below. Exact under the cost model, in O(N^2 M^2) for one level and
    O(N^3 m^2) for each inner one. Raises `PlanDoesNotFit` where that would take too long.
    """
    tables = solve(profile, cluster)
    return Partition(tuple(_unfold(tables, len(tables) - 1, 0, len(profile.layers), 0)))


def bottleneck_seconds(profile: Profile, cluster: Cluster) -> float:
    """A^L(1..N, all workers): seconds per minibatch of the plan that `pipedream` finds."""
    table = solve(profile, cluster)[-1]
    return float(table.best(0, table.num_layers)[-1][-1])


def solve(profile: Profile, cluster: Cluster) -> tuple["LevelTable", ...]:
    """One table per level of the cluster, innermost first."""
    costs = Chain(profile, cluster.device)
    _refuse_long_work(costs.num_layers, cluster)
    sizes = accumulate((level.count for level in cluster.levels), mul, initial=1)
    inner = spans(costs.compute)
    tables: list[LevelTable] = []
    for level, size in zip(cluster.levels, sizes, strict=False):
        if tables:
            inner = tables[-1].all_pairs()
        tables.append(LevelTable(costs, level, inner, size))
    return tuple(tables)


@dataclass(frozen=True)
class LevelTable:
    """The recursion A^k of one level: layers s..j-1 on `level.count` members.

    inner   A^(k-1) as a matrix [j, s], seconds per minibatch on one member
    size    devices in one member
    """

    costs: Chain
    level: Level
    inner: Floats
    size: int

    @property
    def num_layers(self) -> int:
        return self.costs.num_layers

    @cached_property
    def stage(self) -> tuple[Floats, ...]:
        """T^k as matrices [j, s]; entry m - 1 is for m members."""
        parameters = between(self.costs.parameters)
        return tuple(
            stage_seconds(self.inner, parameters, members, self.level.bandwidth)
            for members in range(1, self.level.count + 1)
        )

    @cached_property
    def cut(self) -> Floats:
        return np.asarray(cut_seconds(self.costs.cuts, self.level.bandwidth))

    def best(self, first: int, stop: int) -> Floats:
        """A^k(first..j-1, m) as a matrix [m, j - first]; infinite where there is no way."""
        starts = slice(first, stop + 1)
        cut = self.cut[starts].copy()
        cut[0] = 0.0
        best = np.full((self.level.count + 1, len(cut)), np.inf)
        best[0, 0] = 0.0
        for members, last in _pairs(self.level.count):
            ahead = np.maximum(best[members - last], cut)
            ways = np.maximum(ahead, self.stage[last - 1][starts, starts])
            np.minimum(best[members], ways.min(axis=1), out=best[members])
        return best

    def all_pairs(self) -> Floats:
        """A^k(s..j-1, all members) as a matrix [j, s], for the level above."""
        gaps = self.num_layers + 1
        pairs = np.full((gaps, gaps), np.inf)
        for first in range(self.num_layers):
            pairs[first:, first] = self.best(first, self.num_layers)[-1]
            pairs[first, first] = np.inf
        return pairs

    def stages(self, first: int, stop: int) -> list[tuple[int, int, int]]:
        """The best stages (first, stop, members) of layers first..stop-1, input first.

        Many partitions often share the smallest bottleneck. Of these: the fewest stages, as
        each keeps one more weight version, then the fewest bytes over the cuts (ours).
        """
        limit = self.best(first, stop)[-1, -1]
        starts = slice(first, stop + 1)
        cuts = self.costs.cuts[starts]
        price = 1 + cuts / (cuts.sum() + 1)
        price[1:][self.cut[starts][1:] > limit] = np.inf
        within = [stage[starts, starts] <= limit for stage in self.stage]
        total = np.full((self.level.count + 1, len(cuts)), np.inf)
        total[0, 0] = 0.0
        for members, last in _pairs(self.level.count):
            ways = np.where(within[last - 1], total[members - last] + price, np.inf)
            np.minimum(total[members], ways.min(axis=1), out=total[members])
        return self._walk_back(total, price, within, first)

    def _walk_back(
        self, total: Floats, price: Floats, within: list[NDArray[np.bool_]], first: int
    ) -> list[tuple[int, int, int]]:
        members, stop = (length - 1 for length in total.shape)
        found: list[tuple[int, int, int]] = []
        while stop:
            rows = [
                np.where(within[last - 1][stop], total[members - last] + price, np.inf)
                for last in range(1, members + 1)
            ]
            last = 1 + int(np.argmin([row.min() for row in rows]))
            start = int(rows[last - 1].argmin())
            found.append((first + start, first + stop, last))
            members, stop = members - last, start
        return found[::-1]


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    """Members in use, and those of the last stage among them, in the order of the recursion."""
    return ((members, last) for members in range(1, count + 1) for last in range(1, members + 1))


def _unfold(
    tables: tuple[LevelTable, ...], depth: int, first: int, stop: int, device: int
) -> list[Stage]:
    """The stages of layers first..stop-1 on one member of level `depth` + 1, from `device` on."""
    if depth < 0:
        return [Stage(first, stop, (device,))]
    stages: list[Stage] = []
    for begin, end, members in tables[depth].stages(first, stop):
        size = tables[depth].size
        copies = [
            _unfold(tables, depth - 1, begin, end, device + copy * size) for copy in range(members)
        ]
        stages += [_merge(same) for same in zip(*copies, strict=True)]
        device += members * size
    return stages


def _merge(copies: tuple[Stage, ...]) -> Stage:
    """One stage of the copies of an inner pipeline. Devices alternate between the copies:
    microbatch k goes to replica k mod r, and so stays within one copy all the way."""
    devices = zip(*(copy.devices for copy in copies), strict=True)
    return Stage(copies[0].first, copies[0].stop, tuple(chain.from_iterable(devices)))


def _refuse_long_work(num_layers: int, cluster: Cluster) -> None:
    *inner, outer = (level.count for level in cluster.levels)
    work = (num_layers**2 + CALL) * outer**2 / 2
    work += sum(num_layers * (num_layers**2 / 3 + CALL) * m**2 / 2 for m in inner)
    if work > MAX_WORK:
        raise PlanDoesNotFit(
            f"{num_layers} layers on {cluster.num_devices} devices are {work:.1e} stage costs "
            f"to compare, more than {MAX_WORK:.0e}",
            "Plan for fewer devices, or join layers that will not be cut apart.",
        )
