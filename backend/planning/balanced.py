"""Pipelines of equal stages: cut into as many as wanted, copied over the devices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, cycle

import numpy as np

from backend.cluster.cluster import Cluster, Device
from backend.planning.cost import Chain, cut_seconds, spans, sync_seconds
from backend.planning.linear_partition import DEEPEST, Table, linear_partition, stops
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile

RECOMPUTED = 4 / 3
"""Compute with recomputation over compute without: forward, forward, backward of two forwards
(PipeDream-2BW, section 3.3)."""
KEPT = 8
"""Tables: the planners ask for the same ones again."""
WIDE = 64
"""Stages of an equal pipeline that is copied: a copy of more is hard to fill."""


def gpipe_balanced(profile: Profile, cluster: Cluster) -> Partition:
    """One stage per device, up to `DEEPEST`; the sum of the squares of the stages' compute is the
    smallest, as torchgpipe balances by time (Kim et al., 2020, section 3.2.2: even block
    partitions)."""
    count = min(len(profile.layers), cluster.num_devices, DEEPEST)
    return side_by_side(even_stops(profile, count))


def two_bw(
    profile: Profile, cluster: Cluster, batch: int = 1, recompute: bool = False
) -> Partition:
    """PipeDream-2BW's width w and depth d, w d <= devices: the pair with the best throughput
    (ICML 2021, section 3.3), each of the w pipelines on neighbouring devices.

        w / max_i max( c T_i + sum of its activations' transfers, gradient transfer / m )

    c is `RECOMPUTED` or 1, m >= d the microbatches of an update (at least `batch`).
    """
    chain = Chain(profile, cluster.device)
    return max(
        widths(profile, cluster),
        key=lambda plan: (rate_2bw(chain, cluster, plan, batch, recompute), -len(plan.stages)),
    )


def widths(profile: Profile, cluster: Cluster) -> Iterator[Partition]:
    """For each depth up to `WIDE` the equal pipeline, copied as often as there is room."""
    most = min(len(profile.layers), cluster.num_devices, WIDE)
    table = _even(profile, most)
    for depth in range(1, most + 1):
        yield copied(stops(table, depth), cluster.num_devices // depth)


def rate_2bw(chain: Chain, cluster: Cluster, plan: Partition, batch: int, recompute: bool) -> float:
    """Microbatches per second of the copied pipeline `plan`, by 2BW's formula."""
    factor, width, worst = RECOMPUTED if recompute else 1.0, plan.replicas[0], 0.0
    microbatches = max(batch, len(plan.stages))
    for number, stage in enumerate(plan.stages):
        busy = factor * float(chain.compute[stage.stop] - chain.compute[stage.first])
        for other in plan.stages[max(number - 1, 0) : number + 2]:
            if other is not stage:
                gap = max(stage.first, other.first)
                link = cluster.link(stage.devices[0], other.devices[0])
                busy += float(cut_seconds(chain.exchanged[gap], link.bandwidth))
        weights = float(chain.parameters[stage.stop] - chain.parameters[stage.first])
        level = cluster.span(stage.devices)
        reduced = float(sync_seconds(weights, width, cluster.slowest[max(level - 1, 0)]))
        worst = max(worst, busy, reduced / microbatches)
    return width / worst if worst else float("inf")


def interleaved(profile: Profile, depth: int, width: int, chunks: int) -> Partition:
    """`depth` pipeline ranks of `chunks` equal stages each, `width` times."""
    plan = copied(even_stops(profile, depth * chunks), width, depth)
    return Partition(plan.stages, chunks=chunks)


def copied(ends: Sequence[int], width: int, depth: int = 0) -> Partition:
    """The stages that end at `ends`, on `depth` devices (default: one each) in turn, and that
    `width` times; replica k of every stage belongs to pipeline k."""
    return _copied(tuple(ends), width, depth or len(ends))


@lru_cache(2 * WIDE)
def _copied(ends: tuple[int, ...], width: int, depth: int) -> Partition:
    firsts = (0, *ends[:-1])
    return Partition(
        tuple(
            Stage(first, stop, tuple(number % depth + copy * depth for copy in range(width)))
            for number, (first, stop) in enumerate(zip(firsts, ends, strict=True))
        ),
        chunks=len(ends) // depth,
    )


def on_neighbours(plan: Partition) -> Partition:
    """The same stages, the replicas of each on devices next to each other."""
    ends = list(accumulate(plan.replicas))
    places = zip(ends, plan.replicas, strict=True)
    devices = [tuple(range(end - count, end)) for end, count in places]
    stages = zip(plan.stages, cycle(devices), strict=False)
    return replace(plan, stages=tuple(replace(stage, devices=each) for stage, each in stages))


def side_by_side(ends: list[int]) -> Partition:
    """The stages that end at `ends`, on one device each."""
    return copied(ends, 1)


def even_stops(profile: Profile, count: int) -> list[int]:
    """Where `count` stages end so that the sum of the squares of their compute is smallest."""
    return stops(_even(profile, count), count)


def _even(profile: Profile, most: int) -> Table:
    """Those of 1 to `most` stages, and of more where they are known."""
    return _squares(tuple(Chain(profile, Device()).compute.tolist())).up_to(most)


@dataclass
class _Squares:
    """The sums of the squares of stages, by prefix sums of compute, as far as somebody asked."""

    compute: tuple[float, ...]
    table: Table | None = None

    def up_to(self, most: int) -> Table:
        if self.table is None or len(self.table) < most:
            free, costs = np.zeros(len(self.compute)), spans(np.array(self.compute)) ** 2
            self.table = linear_partition(np.add, costs, [free] * (most - 1), self.table)
        return self.table


_squares = lru_cache(KEPT)(_Squares)
