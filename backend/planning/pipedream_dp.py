"""PipeDream's planner: the partition with the smallest bottleneck, exact and with its proof."""

from dataclasses import dataclass, replace

import numpy as np

from backend.cluster.cluster import Cluster
from backend.planning.arrange import arranged, arrangements, put_back
from backend.planning.cost import DIRECTIONS, ROUNDING, floor_seconds
from backend.planning.downsets import Downsets
from backend.planning.memory import MemoryRule
from backend.planning.placed import bottleneck
from backend.planning.plan import Partition, PlanDoesNotFit, Stage
from backend.planning.pool import MOST, Pool, downsets
from backend.planning.threshold import Piece, Space
from backend.planning.tidy import tidy
from backend.profiles.profile import Profile
from backend.units import bytes_text

CLOSE = 1e-4
"""Bisect until upper and lower bound are this close; then jump from plan to better plan."""
CLOSE_BOUND = 1e-3
"""The same for a bound that is not proved by a plan."""
FEWER = 400
"""Cuts under a memory limit where not all are looked at anyway: each costs more there."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """A partition with its proof.

    seconds      its bottleneck per minibatch (`backend.planning.placed`)
    lower_bound  no plan is faster; equal to `seconds` where the partition is proved to be best.
                 Else not every cut (or not every copied pipeline) was looked at
    """

    partition: Partition
    seconds: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """By how much the best plan of all may be faster, as a share of `seconds`."""
        return max(0.0, 1 - self.lower_bound / self.seconds) if self.seconds else 0.0


def pipedream(profile: Profile, cluster: Cluster) -> Partition:
    """The partition with the smallest bottleneck of all on `cluster` (SOSP 2019, section 3.1).

    Cuts are nested downsets of the graph; stages follow each other device by device, and may
    span machines; pipelines may be copied over machines. Raises `PlanDoesNotFit`.
    """
    return optimum(profile, cluster).partition


def bottleneck_seconds(profile: Profile, cluster: Cluster) -> float:
    """Seconds per minibatch of the plan that `pipedream` finds."""
    return optimum(profile, cluster).seconds


def optimum(
    profile: Profile,
    cluster: Cluster,
    overlap: bool = True,
    memory: MemoryRule | None = None,
    cuts: Downsets | None = None,
) -> Optimum:
    """The best partition, with its bottleneck and a lower bound to all others.

    Devices may stay idle. Of equal plans: the fewest stages, as each keeps one more weight
    version, then idle devices join a stage that they do not slow. A pipeline copied over
    machines is never faster than its layers as one stage there (its ring is no longer and its
    work is even), so copies are looked at only where `memory` forbids that. Unequal devices are
    taken in some orders (`backend.planning.arrange`). Raises `PlanDoesNotFit` where nothing
    keeps within `memory`.
    """
    found: list[Optimum] = []
    faults: list[PlanDoesNotFit] = []
    for order in arrangements(cluster):
        try:
            best = _optimum(profile, arranged(cluster, order), overlap, memory, cuts)
        except PlanDoesNotFit as fault:
            faults.append(fault)
            continue
        found.append(replace(best, partition=put_back(best.partition, order)))
    if not found:
        raise faults[0]
    return min(found, key=lambda one: one.seconds)


def _optimum(
    profile: Profile,
    cluster: Cluster,
    overlap: bool,
    memory: MemoryRule | None,
    cuts: Downsets | None,
) -> Optimum:
    """The same for the devices in the cluster's order."""
    bound = floor_seconds(profile, cluster, overlap)
    best = Partition((Stage(0, len(profile.layers), tuple(range(cluster.num_devices))),))
    seconds = bottleneck(profile, cluster, best, overlap)
    is_best = seconds <= bound * (1 + ROUNDING)
    if is_best and (memory is None or _fits(profile, cluster, best, memory)):
        return Optimum(best, seconds, seconds)
    asked = _Asked(profile, cluster, overlap, memory)
    found = cuts or downsets(profile)
    return asked.among(found, best, bound) if found else asked.among_many(best, bound)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question, apart from the cuts that are looked at."""

    profile: Profile
    cluster: Cluster
    overlap: bool
    memory: MemoryRule | None

    def among(self, found: Downsets, start: Partition, bound: float) -> Optimum:
        """The best plan that is made of the cuts `found`, `start` (which may not fit) or
        another; its bound holds for all plans."""
        space = Space(found, self.cluster, self.overlap)
        seconds = bottleneck(self.profile, self.cluster, start, self.overlap)
        best, seconds, proved = _improve(space, start, seconds, bound)
        bound = proved if found.complete and self.cluster.is_uniform else bound
        best = tidy(self.profile, self.cluster, best, seconds, self.overlap)
        if self.memory is None or _fits(self.profile, self.cluster, best, self.memory):
            return Optimum(best, seconds, bound)
        return _within_memory(replace(space, memory=self.memory), bound)

    def among_many(self, start: Partition, bound: float) -> Optimum:
        """The best plan found where there are too many cuts to look at each.

        First those that stand for others; then those that are light enough for a better plan:
        all, where they are few, and the plan is proved. Else the time below which even cells of
        like cuts admit no plan is the bound.
        """
        pool = Pool.of(self.profile)
        most = MOST if self.memory is None else FEWER
        best = self.among(pool.thinned(np.arange(len(pool)), most), start, bound)
        fastest = max(level.bandwidth for level in self.cluster.levels)
        light = pool.within(best.seconds * fastest / DIRECTIONS * (1 + ROUNDING))
        start = best.partition if self.memory is None else start
        if len(light) <= MOST and pool.is_exact:
            return self.among(pool.downsets(light, complete=True), start, bound)
        second = self.among(pool.thinned(light, most), start, bound)
        best = min(best, second, key=lambda found: found.seconds)
        if not pool.is_whole or not self.cluster.is_uniform:
            return best
        cells = Space(pool.cells(light, most), self.cluster, self.overlap, self.memory, True)
        return replace(best, lower_bound=_lowest(cells, best.lower_bound, best.seconds))


def _fits(profile: Profile, cluster: Cluster, partition: Partition, memory: MemoryRule) -> bool:
    """Whether every stage keeps within `memory` on the smallest of its devices."""
    ordered, stages = profile.in_order(partition.order), partition.stages
    for number, stage in enumerate(stages):
        after = sum(other.replicas for other in stages[number + 1 :])
        sizes = [cluster.at(device).memory for device in stage.devices]
        limit = min([memory.limit, *(size for size in sizes if size is not None)])
        if memory.needs(ordered, stage, after) > limit:
            return False
    return True


def _within_memory(space: Space, bound: float) -> Optimum:
    """The best of the plans that fit: side by side, or one pipeline copied over machines."""
    fault = None
    found: list[tuple[float, Partition]] = []
    try:
        best, seconds = _first_that_fits(space)
        best, seconds, proved = _improve(space, best, seconds, bound)
        found.append((seconds, best))
    except PlanDoesNotFit as error:
        fault, proved = error, bound
    for level in range(1, len(space.cluster.levels)):
        if copied := _copied(space, level):
            found.append(
                (bottleneck(space.downsets.profile, space.cluster, copied, space.overlap), copied)
            )
    if not found:
        assert fault is not None
        raise fault
    seconds, best = min(found, key=lambda pair: pair[0])
    if (
        isinstance(space.downsets, Downsets)
        and space.downsets.complete
        and space.cluster.is_uniform
    ):
        one_level = len(space.cluster.levels) == 1
        bound = proved if one_level else _lowest(replace(space, relaxed=True), bound, seconds)
    return Optimum(best, seconds, bound)


def _lowest(relaxed: Space, low: float, seconds: float) -> float:
    """The largest time found, up to `seconds`, below which `relaxed` admits no plan."""
    high = seconds
    while high > low * (1 + CLOSE_BOUND):
        middle = low + (high - low) / 2
        if relaxed.within(middle) is None:
            low = middle
        else:
            high = middle
    return low


def _copied(space: Space, level: int) -> Partition | None:
    """The best pipeline of one member of `level`, on each of them; microbatch k goes to
    replica k mod r, and so stays within one copy all the way."""
    cluster, block = space.cluster, space.cluster.sizes[level]
    if not cluster.is_uniform:
        return None
    inside = replace(space, cluster=Cluster(cluster.levels[:level], cluster.each[0]))
    try:
        best, seconds = _first_that_fits(inside)
    except PlanDoesNotFit:
        return None
    best, _, _ = _improve(inside, best, seconds, 0.0)
    starts = range(0, cluster.num_devices, block)
    stages = (
        replace(stage, devices=tuple(start + d for d in stage.devices for start in starts))
        for stage in best.stages
    )
    return Partition(tuple(stages), best.order)


def _improve(
    space: Space,
    best: Partition,
    seconds: float,
    bound: float,
) -> tuple[Partition, float, float]:
    """The best partition of `space`, its seconds, and what is proved to be a lower bound."""
    profile, low = space.downsets.profile, bound
    complete = isinstance(space.downsets, Downsets) and space.downsets.complete
    while seconds > low * (1 + ROUNDING):
        near = seconds <= low * (1 + CLOSE)
        if near and not complete:
            break
        limit = seconds * (1 - ROUNDING) if near else low + (seconds - low) / 2
        pieces = space.within(limit)
        if pieces is None:
            low = limit
            if near:
                break
            continue
        best = to_partition(space, pieces)
        seconds = min(limit, bottleneck(profile, space.cluster, best, space.overlap))
    return best, seconds, seconds if seconds <= low * (1 + 2 * ROUNDING) else low


def to_partition(space: Space, pieces: tuple[Piece, ...]) -> Partition:
    """The pieces as stages on devices, the last device at position 0."""
    count, found = space.cluster.num_devices, space.downsets
    assert isinstance(found, Downsets)
    sizes = found.members.sum(axis=1)
    order = found.order(piece.stop for piece in pieces)
    stages = (
        Stage(int(sizes[p.first]), int(sizes[p.stop]), tuple(range(count - p.end, count - p.start)))
        for p in pieces
    )
    return Partition(tuple(stages), order)


def _first_that_fits(space: Space) -> tuple[Partition, float]:
    """Some plan that keeps within the memory, however slow."""
    pieces = space.within(_any_time(space))
    if pieces is None:
        raise _does_not_fit(space)
    best = to_partition(space, pieces)
    return best, bottleneck(space.downsets.profile, space.cluster, best, space.overlap)


def _any_time(space: Space) -> float:
    """Seconds within which every stage and every cut stays."""
    profile = space.downsets.profile
    moved = profile.parameter_bytes + sum(layer.output_bytes for layer in profile.layers)
    return float(2 * (space.compute[-1] + 4 * moved / min(space.cluster.slowest)))


def _does_not_fit(space: Space) -> PlanDoesNotFit:
    """The error with the smallest memory in which there is a plan, found by bisection."""
    assert space.memory is not None
    memory, limit = space.memory, _any_time(space)
    low, high = memory.limit, max(2 * memory.limit, 1024.0)
    while replace(space, memory=replace(memory, limit=high)).within(limit) is None:
        low, high = high, 2 * high
    while high - low > max(1.0, high / 4096):
        middle = (low + high) / 2
        fits = replace(space, memory=replace(memory, limit=middle)).within(limit)
        low, high = (middle, high) if fits is None else (low, middle)
    return PlanDoesNotFit(
        f"no partition of {space.downsets.profile.name} fits on {space.cluster.num_devices} "
        f"devices of {bytes_text(memory.limit)}: the smallest needs {bytes_text(high)}, "
        f"{bytes_text(high - memory.limit)} too much",
        "Recompute activations, keep fewer microbatches in flight (a smaller batch or a flush), "
        "use 2BW's two weight versions, a smaller microbatch, or more devices for more stages.",
    )
