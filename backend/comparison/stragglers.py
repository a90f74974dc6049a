"""Ranks that compute longer than their plan says, and the cluster as its devices were measured."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from backend.cluster.cluster import Cluster
from backend.comparison.within import within
from backend.pipeline.actions import Compute
from backend.pipeline.kinds import Floats, Is, Kind
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Plan
from backend.prediction.durations import PlanDurations

SLOW = 1.25
"""Times its predicted seconds from which on a rank is said to be slow."""
ENOUGH = 50
"""Minibatches over which a rank is judged: fewer say nothing yet."""
SHORTEST = 1e-3
"""Predicted seconds of a rank's minibatch below which it is not judged: what the system adds to
each action is as long."""
SAME = 0.05
"""Of a device's speed: what is measured closer to it than this leaves it as it is."""
DIGITS = 3
"""Significant digits of a measured speed."""
NO_TIME = 0.999
"""The most of a rank's time that others can have had, so that it has some speed."""


@dataclass(frozen=True, slots=True)
class RankPace:
    """`slowdown`: by how much longer than predicted a rank computes a minibatch, of its median one
    (1.0 = as predicted). `device` is its number in the cluster, `minibatches` counts those in which
    it computed."""

    rank: int
    device: int
    slowdown: float
    minibatches: int


@dataclass(frozen=True, slots=True)
class Paces:
    """What the ranks of a run computed in its last `minibatches` beside what its plan says.

    cluster   that of the plan, with the speeds of its devices as they were measured
    planned   the same with the speeds that the plan was made for
    """

    ranks: tuple[RankPace, ...]
    minibatches: int
    cluster: Cluster
    planned: Cluster

    @property
    def shared(self) -> float:
        """The slowdown that is the profile's fault, not a rank's: what all ranks have at least, or
        where half of them compute less than planned, what that half has at most."""
        slowdowns = sorted(pace.slowdown for pace in self.ranks)
        return min(max(1.0, slowdowns[0]), slowdowns[(len(slowdowns) - 1) // 2])

    @property
    def stragglers(self) -> tuple[RankPace, ...]:
        """Ranks that are slow beside what ranks share, the slowest first."""
        slow = [pace for pace in self.ranks if pace.slowdown >= SLOW * self.shared]
        return tuple(sorted(slow, key=lambda pace: -pace.slowdown))

    @property
    def are_all_slow(self) -> bool:
        """Whether every rank is: the profile does not hold on these devices."""
        return self.shared >= SLOW

    @property
    def is_measured(self) -> bool:
        """Whether the devices have other speeds than the plan was made for."""
        return self.cluster != self.planned


@dataclass(frozen=True, slots=True)
class MeasuredSegment:
    """What ranks did in a segment; `beside` it what was done for an action and is no compute
    (loading its samples, copying its weights)."""

    measured: Timeline
    beside: tuple[Timeline, ...] = ()


def paces(
    segments: Iterable[MeasuredSegment],
    durations: PlanDurations,
    plan: Plan,
    taken: Mapping[int, float],
) -> Paces | None:
    """Of as many of `segments`, the newest first, as hold `ENOUGH` minibatches; None where all hold
    fewer, and where pipelines share devices: then one's action holds what others computed. `taken`:
    per rank the share of its time in which it had no core, which is no fault of the rank."""
    if plan.num_pipelines > 1:
        return None
    found: list[Floats] = []
    for segment in segments:
        found.append(_ratios(segment, durations, plan.batch))
        if sum(map(len, found)) >= ENOUGH:
            break
    minibatches = sum(map(len, found))
    if minibatches < ENOUGH:
        return None
    num_ranks = len(durations.devices)
    ratios = np.concatenate([_with(one, num_ranks) for one in found])
    ranks = []
    for rank in range(num_ranks):
        own = ratios[:, rank]
        known = own[~np.isnan(own)]
        if len(known):
            left = 1 - min(taken.get(rank, 0.0), NO_TIME)
            slowdown = float(np.median(known)) * left
            ranks.append(RankPace(rank, durations.device(rank), slowdown, len(known)))
    if not ranks or any(pace.slowdown <= 0 for pace in ranks):
        return None
    planned = durations.cluster
    return Paces(tuple(ranks), minibatches, _as_measured(planned, ranks), planned)


def _ratios(segment: MeasuredSegment, durations: PlanDurations, batch: int) -> Floats:
    """Measured over predicted seconds of compute, by minibatch and rank; NaN where a rank computed
    nothing, or too little. The norm of its gradients may make a step wait for other ranks: it
    is left out."""
    whole = segment.measured
    seconds = whole.seconds.copy()
    for parts in segment.beside:
        place, overlap = within(whole, parts)
        np.subtract.at(seconds, place, overlap)
    computes = whole.rows.are(Is.COMPUTE) & (whole.rows.kind != Kind.STEP)
    computes &= whole.rows.microbatch >= 0
    of, seconds = whole.at(computes), np.maximum(seconds[computes], 0.0)
    minibatch = of.rows.microbatch // batch
    shape = (int(minibatch.max(initial=-1)) + 1, of.num_ranks)
    place = minibatch * of.num_ranks + of.rank
    size = shape[0] * shape[1]
    measured = np.bincount(place, seconds, size)
    predicted = np.bincount(place, _predicted(of, durations), size)
    ratios = np.full(size, np.nan)
    np.divide(measured, predicted, out=ratios, where=predicted >= SHORTEST)
    return ratios.reshape(shape)


def _predicted(of: Timeline, durations: PlanDurations) -> Floats:
    """The seconds that each action is predicted to take: one number for all of a kind and stage."""
    names = np.stack([of.rank, of.rows.kind, of.rows.stage])
    _, first, which = np.unique(names, axis=1, return_index=True, return_inverse=True)
    known = zip(of.rank[first].tolist(), of.rows.at(first).actions(), strict=True)
    seconds = [durations.compute(rank, cast(Compute, action)) for rank, action in known]
    return np.array(seconds)[which.ravel()]


def _with(ratios: Floats, num_ranks: int) -> Floats:
    """With a column for each rank: a segment may lack those that did nothing in it."""
    missing = num_ranks - ratios.shape[1]
    return np.pad(ratios, ((0, 0), (0, max(missing, 0))), constant_values=np.nan)[:, :num_ranks]


def _as_measured(cluster: Cluster, ranks: Sequence[RankPace]) -> Cluster:
    """The cluster with the speeds of the devices of `ranks` as measured."""
    speeds = {}
    for pace in ranks:
        planned = cluster.at(pace.device).speed
        if abs(pace.slowdown - 1) > SAME:
            speeds[pace.device] = float(f"{planned / pace.slowdown:.{DIGITS}g}")
    if not speeds:
        return cluster
    devices = tuple(
        replace(device, speed=speeds.get(number, device.speed))
        for number, device in enumerate(cluster.each)
    )
    if len(set(devices)) == 1:
        return replace(cluster, device=devices[0], devices=())
    return replace(cluster, devices=devices)
