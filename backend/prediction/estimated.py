"""What a plan does that is too large to be simulated: as fast as what it waits for most allows."""

from itertools import pairwise
from math import lcm

import numpy as np

from backend.pipeline.actions import Flow, Message
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import RankCoordinates, Shape
from backend.planning.plan import Plan
from backend.prediction.bottleneck import busiest, drained
from backend.prediction.durations import PlanDurations
from backend.prediction.prediction import Prediction
from backend.prediction.shared_links import ClusterLinks

MOST_TURNS = 4096
"""Microbatches of a cut whose ways are counted."""


def estimated(
    durations: PlanDurations, plan: Plan, shape: Shape, memory: tuple[float, ...]
) -> Prediction:
    """The figures of `plan`, of which no figure is simulated: its most loaded stage, cut or host,
    its flush, a link that ranks share, or the way of a microbatch through the stages behind one
    and back, of which only so many are under way at once. What these leave out makes it slower:
    136 small plans were estimated at 0.86 to 2.75 times their simulated rate, the median 1.25."""
    rule, stages = schedule(plan.schedule), plan.partition.stages
    at = [shape.at(shape.group_of(n)[0]) for n in range(shape.pipeline_size)]
    worst = max(busiest(durations, plan, shape), drained(durations, plan))
    worst = max(worst, _on_shared_links(durations, plan, shape))
    worst = max(worst, _under_way(durations, plan, shape, [_held(rule, each) for each in at]))
    seconds = plan.batch * worst
    computed = tuple(map(sum, zip(durations.forward, durations.backward, strict=True)))
    versions = tuple(rule.live(at[shape.pipeline_rank_of(n)]) for n in range(shape.num_stages))
    sent = plan.batch * sum(_messages(durations, plan))
    plain = plan.batch * sum(_messages(durations.plain, plan))
    for number, stage in enumerate(stages):
        round_of = plan.batch if rule.batched else stage.replicas
        times = stage.replicas * plan.batch / round_of
        if durations.exchange is not None:
            between = times * durations.exchange.sent(number, plan.num_pipelines)
            sent, plain = sent + between, plain + between
        if stage.replicas > 1:
            sent += times * durations.reduced_bytes(number, stage.replicas)
            plain += times * durations.plain.reduced_bytes(number, stage.replicas)
    ranks = plan.partition.num_devices
    return Prediction(
        plan=plan,
        seconds_per_minibatch=seconds,
        samples_per_second=plan.batch * plan.microbatch / seconds if seconds else 0.0,
        bubble=max(0.0, 1 - sum(computed) / (worst * ranks)) if worst else 0.0,
        sent_bytes=sent,
        memory_bytes=memory,
        stage_seconds=computed,
        staleness=0 if rule.flushes else max(versions) - 1,
        versions=versions,
        is_simulated=False,
        plain_bytes=plain if plan.codecs or plan.codec_of_sums else None,
    )


def _held(rule: Schedule, at: RankCoordinates) -> int:
    """Microbatches in flight on all replicas at the pipeline rank of `at`."""
    if not at.shares_here:
        return max(1, rule.in_flight(at)) * at.replicas_here
    group = at.shape.group_of(at.pipeline_rank)
    return sum(max(1, rule.in_flight(at.shape.coordinates[rank])) for rank in group)


def _on_shared_links(durations: PlanDurations, plan: Plan, shape: Shape) -> float:
    """Seconds per microbatch of the busiest link out of a machine or into one (`ClusterLinks`)."""
    cluster, stages = durations.cluster, plan.partition.stages
    sizes, bandwidth = cluster.sizes[1:-1], np.array([each.bandwidth for each in cluster.levels])
    out = [np.zeros(cluster.num_devices // size) for size in sizes]
    into = [np.zeros(cluster.num_devices // size) for size in sizes]
    for number, (here, there) in enumerate(pairwise(stages)):
        turns = np.arange(min(lcm(*shape.rounds[number : number + 2]), MOST_TURNS))
        takers = (np.array(shape.patterns[each]) for each in (number, number + 1))
        source, target = (
            np.array(stage.devices)[own[turns % len(own)]]
            for stage, own in zip((here, there), takers, strict=True)
        )
        ways = [(source, target, durations.message_bytes(Message(Flow.ACTIVATION, number, 0)))]
        if not durations.one_way[number]:
            back = durations.message_bytes(Message(Flow.GRADIENT, number + 1, 0))
            ways.append((target, source, back))
        climbed = sum((source // size != target // size).astype(np.int64) for size in sizes)
        seconds = 1 / bandwidth[climbed] / len(turns)
        for one, other, sent in ways:
            for size, leaving, entering in zip(sizes, out, into, strict=True):
                crosses = one // size != other // size
                np.add.at(leaving, one[crosses] // size, sent * seconds[crosses])
                np.add.at(entering, other[crosses] // size, sent * seconds[crosses])
    links = ClusterLinks(cluster, durations)
    for number, stage in enumerate(stages):
        group = shape.group_of(number)
        sums = sum(piece.seconds for piece in durations.pieces(number, group))
        for each in links.on_ring(group).values():
            for (way, size, machine), share in each.items():
                used = (out if way == "out of" else into)[sizes.index(size)]
                used[machine] += share * sums / max(stage.replicas, plan.batch)
    return max((float(each.max()) for each in (*out, *into)), default=0.0)


def _messages(durations: PlanDurations, plan: Plan) -> list[float]:
    """Bytes over each cut, of a microbatch, both ways."""
    cuts = range(len(plan.partition.stages) - 1)
    back = (Message(Flow.GRADIENT, cut + 1, 0) for cut in cuts)
    return [
        durations.message_bytes(Message(Flow.ACTIVATION, cut, 0))
        + (0.0 if durations.one_way[cut] else durations.message_bytes(gradient))
        for cut, gradient in zip(cuts, back, strict=True)
    ]


def _under_way(durations: PlanDurations, plan: Plan, shape: Shape, in_flight: list[int]) -> float:
    """Seconds per microbatch below which none comes that has to go through all stages behind some
    stage and back, while so many are `in_flight` there. 0 where stages share devices, or where no
    gradient comes back."""
    cut = plan.partition
    if cut.chunks > 1 or any(durations.one_way) or plan.num_pipelines > 1:
        return 0.0
    computed = list(map(sum, zip(durations.forward, durations.backward, strict=True)))
    ways = [
        2
        * durations.transfer(
            Message(Flow.ACTIVATION, here, 0), shape.rank_of(here, 0), shape.rank_of(there, 0)
        )
        for here, there in pairwise(range(len(cut.stages)))
    ]
    longest, behind = 0.0, 0.0
    for number in reversed(range(len(cut.stages))):
        behind += computed[number] + (ways[number] if number < len(ways) else 0.0)
        most = in_flight[number]
        longest = max(longest, behind / most)
    return longest
