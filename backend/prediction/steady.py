"""The steady state of a plan: its program on the cluster's clock until finish times repeat.

How long a pipeline takes to settle differs: after one batch where it flushes, after some rounds
where it does not. So a short segment is simulated, then one twice as long, until every rank does
the same again a period later. What never repeats (front stages to which no gradient comes back
run ahead) is read from the second half of a long one.
"""

from dataclasses import dataclass, replace

import numpy as np

from backend.cluster.cluster import Cluster
from backend.pipeline.bubbles import bubble
from backend.pipeline.kinds import Is, Kind
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Plan
from backend.prediction.alike_groups import AlikeGroups
from backend.prediction.bottleneck import drains
from backend.prediction.durations import PlanDurations
from backend.prediction.segment import Segment, segment
from backend.prediction.shapes import microbatch_unit
from backend.prediction.shared_links import ClusterLinks
from backend.prediction.sharing import shared_cores
from backend.prediction.weight_update_cost import weight_update_costs
from backend.profiles.profile import Profile

PERIODS = range(1, 13)
"""Units of microbatches after which finish times are looked at for a repetition."""
SMALL = 2_000
"""Forwards up to which a segment that does not settle is simulated at two and four times the
length."""
LONGEST = 40_000
"""Forwards above which no longer segment is simulated: what has not settled by then is read from
the one before."""
ORDERED = 10
"""Updates of a rank that are ordered while a forward is simulated."""
SAME = 1e-9
"""Relative difference of two periods below which they are the same."""


@dataclass(frozen=True, slots=True)
class Steady:
    """A segment and its timeline, and the seconds per microbatch that it settles at."""

    segment: Segment
    timeline: Timeline
    durations: PlanDurations
    seconds: float

    def bubble(self, shape: Shape) -> float:
        """The share of rank time that is waiting in a segment of `shape`, warm-up and drain
        included: more of the same in the middle of this one. It is exact where whole repetitions
        are added; elsewhere the drain may differ by a part of one."""
        short = self.segment.shape.num_microbatches
        share, makespan = bubble(self.timeline), self.timeline.makespan
        if shape.num_microbatches == short or not makespan:
            return share
        longer = makespan + (shape.num_microbatches - short) * self.seconds
        return 1 - (1 - share) * makespan * shape.num_microbatches / short / longer


def steady(profile: Profile, cluster: Cluster, plan: Plan, whole: Shape) -> Steady:
    """That of `plan`; `whole` is the segment that is long enough for most. Of groups of replicas
    that are alike one is simulated. Raises as `lower`."""
    unit = microbatch_unit(plan)
    durations = durations_in(whole, profile, cluster, plan)
    alike = AlikeGroups.of(durations, plan, whole)
    for num_microbatches in lengths(whole, unit, drains(plan.schedule)):
        shape = replace(whole, num_microbatches=num_microbatches)
        found = segment(plan.schedule, shape, alike.groups)
        timeline = alike.timeline(found.program)
        if seconds := repetition(timeline, found, unit)[1]:
            return Steady(found, timeline, durations, seconds)
    slope = seconds_per_microbatch(timeline, found.program.shape, unit, alike.groups.count)
    return Steady(found, timeline, durations, slope)


def forwards(plan: Plan, whole: Shape) -> int:
    """Those of the shortest segment that is simulated, or as many as take as long as ordering it,
    where replicas share batches unevenly: each has an order of its own."""
    shortest = lengths(whole, microbatch_unit(plan), drains(plan.schedule))[0]
    orders = [
        count
        for rank, count in enumerate(whole.replicas)
        if whole.shares_at(rank) or (schedule(plan.schedule).batched and whole.batch % count)
    ]
    ordering = sum(orders) * whole.num_pipelines * shortest // (whole.batch * ORDERED)
    return max(shortest * whole.num_stages, ordering)


def on_cluster(
    program: Program, profile: Profile, cluster: Cluster, plan: Plan
) -> tuple[Timeline, PlanDurations]:
    """The program of `plan` on the cluster's clock, and the seconds of its actions."""
    durations = durations_in(program.shape, profile, cluster, plan)
    cores, links = shared_cores(durations), ClusterLinks(cluster, durations)
    return simulate(program, durations, links, cores), durations


def durations_in(shape: Shape, profile: Profile, cluster: Cluster, plan: Plan) -> PlanDurations:
    """The seconds of the actions of `plan` in a segment of `shape`; `profile` is at its
    microbatch."""
    costs = weight_update_costs(schedule(plan.schedule), shape)
    return PlanDurations.of(profile, cluster, plan, costs)


def in_flight(shape: Shape) -> int:
    """Microbatches in flight where each device has a stage, as far ahead as `shape` runs."""
    return shape.num_devices * (1 + shape.run_ahead)


def lengths(whole: Shape, unit: int, is_drained: bool) -> list[int]:
    """Microbatches of the segments that are simulated, one after another, each about twice as long
    as the one before: the pipeline filled twice where no update drains it, some units, and up to
    the whole or `LONGEST`; where the whole is small, also two and four times as many."""
    size = unit * (5 if is_drained else 4 + -(-2 * in_flight(whole) // unit))
    found = []
    while 2 * size <= whole.num_microbatches:
        found.append(size)
        size *= 2
        if size * whole.num_stages > LONGEST:
            return found
    found.append(whole.num_microbatches)
    if whole.num_stages * whole.num_microbatches <= SMALL:
        found += [2 * whole.num_microbatches, 4 * whole.num_microbatches]
    return found


def repetition(timeline: Timeline, segment: Segment, unit: int) -> tuple[int, float]:
    """After how many units the finish times of all ranks repeat before the first of them has begun
    its last microbatch, and the seconds per microbatch; zeros where they do not, or where a rank
    stands still for a period: front stages to which no gradient comes back do not wait for it.

    They do where all that ended within a period, and within the units in which a microbatch goes
    through the pipeline (two at least), ended likewise a period before."""
    rows, units = timeline.rows, segment.shape.num_microbatches // unit
    num_ranks = segment.program.num_ranks
    compute = np.flatnonzero(rows.are(Is.COMPUTE))
    rank, kind, stage = timeline.rank[compute], rows.kind[compute], rows.stage[compute]
    end = timeline.end[compute]
    counts = np.bincount(rank, minlength=num_ranks)
    starts = np.cumsum(counts) - counts
    forwards = kind == Kind.FORWARD
    last = np.zeros(num_ranks)
    np.maximum.at(last, rank[forwards], end[forwards])
    until = float(last.min())
    within = np.flatnonzero(end <= until)
    if not len(within):
        return 0, 0.0
    latest = within[end[within].argmax()]
    through = max(2, -(-in_flight(segment.shape) // unit))
    for each in PERIODS:
        if 2 * each >= units or (counts * each % units).any():
            continue
        back = counts * each // units
        if latest - back[rank[latest]] < starts[rank[latest]]:
            continue
        length = float(end[latest] - end[latest - back[rank[latest]]])
        now = within[end[within] > until - length * max(1.0, through / each)]
        then = now - back[rank[now]]
        if length <= 0 or (then < starts[rank[now]]).any():
            continue
        same = (kind[now] == kind[then]) & (stage[now] == stage[then])
        same &= np.abs(end[now] - end[then] - length) <= SAME * length
        if same.all() and (np.bincount(rank[now], minlength=num_ranks) >= back).all():
            return each, length / (each * unit)
    return 0, 0.0


def seconds_per_microbatch(timeline: Timeline, shape: Shape, unit: int, groups: int = 1) -> float:
    """Slope over the second half of a segment, predicted or measured, at the last stage: it
    drains last, so neither the fill nor the drain is in it. Of one of several `groups` that are
    alike, seconds per microbatch of all; `unit` is of all too."""
    rows = timeline.rows
    units = shape.num_microbatches * groups // unit
    half = units // 2 * unit // groups
    done = rows.are(Is.LEARNING) & (rows.stage == shape.num_stages - 1)
    second, ends = rows.microbatch[done] >= half, timeline.end[done]
    last, middle = ends[second].max(initial=0.0), ends[~second].max(initial=0.0)
    return float(last - middle) / ((shape.num_microbatches - half) * groups)
