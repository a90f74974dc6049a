"""What holds a plan back: its slowest stage, cut or host, and how slow that is."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, lcm
from operator import truediv
from typing import Literal

import numpy as np

from backend.cluster.cluster import Cluster
from backend.pipeline.actions import Average, Flow, Message
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.planning.plan import Plan
from backend.prediction.durations import PlanDurations
from backend.prediction.link_loads import link_seconds
from backend.prediction.shapes import steady_shape
from backend.prediction.sharing import shared_cores
from backend.profiles.profile import Profile
from backend.units import bytes_text, count_text, percent_text, seconds_text


@dataclass(frozen=True, slots=True)
class Load:
    """`seconds` per microbatch for which a device of stage `number`, the cut behind that stage, or
    every core of host `number` is busy."""

    of: Literal["stage", "cut", "host"]
    number: int
    seconds: float


def loads(durations: PlanDurations, plan: Plan, shape: Shape) -> tuple[Load, ...]:
    """Every pipeline rank of the pipeline (by its first stage), every cut, and every host whose
    devices share cores.

    The replicas of a stage share its microbatches, and synchronise once per round (once per
    batch where the schedule flushes, `plan.batch` > 1); the channels of a cut are the pairs of
    replicas between which microbatches go round robin, in each of the parallel pipelines. Sites
    are alike: those of the first stand for all, and have their share of the microbatches.
    """
    cut = plan.partition
    compute, every = _compute(durations, plan), cut.replicas
    found = []
    for pipeline_rank, replicas in enumerate(every):
        held = cut.held_by(pipeline_rank)
        group = shape.group_of(pipeline_rank)
        update = sum(
            durations.update[s] + durations.exposed(s, group) + durations.gathering[s] for s in held
        )
        update += sum(_exchange(durations, plan, shape, stage) for stage in held)
        busy = sum(compute[s] for s in held) / replicas + update / max(replicas, plan.batch)
        if cut.stages[pipeline_rank].shares:
            busy = _busiest_replica(durations, plan, pipeline_rank, compute[pipeline_rank])
        found.append(Load("stage", pipeline_rank, busy / durations.num_sites))
    for number in filter(cut.crosses, range(len(cut.stages) - 1)):
        channels = _channels(shape, number) * plan.num_pipelines
        ranks = shape.rank_of(number, 0), shape.rank_of(number + 1, 0)
        message = Message(Flow.ACTIVATION, number, 0)
        found.append(Load("cut", number, durations.transfer(message, *ranks) / channels))
    return (*found, *_hosts(durations, plan))


def _exchange(durations: PlanDurations, plan: Plan, shape: Shape, stage: int) -> float:
    """Seconds in which sites exchange the weights of `stage` after an update, on average."""
    if not plan.is_apart:
        return 0.0
    group = shape.sharing(shape.rank_of(stage, 0))
    return durations.collective(Average(stage, group, 0))


def _busiest_replica(durations: PlanDurations, plan: Plan, number: int, compute: float) -> float:
    """Seconds per microbatch of the replica of stage `number` that its share keeps busy longest."""
    stage, cluster = plan.partition.stages[number], durations.cluster
    update = durations.update[number] / plan.batch
    return max(
        (compute * part + update) * durations.pace(number) / cluster.at(device).speed
        for device, part in zip(stage.devices, stage.parts, strict=True)
    )


def _channels(shape: Shape, number: int) -> float:
    """Microbatches of which one goes over the channel behind stage `number` that takes the
    first."""
    here, there = (shape.rounds[shape.pipeline_rank_of(s)] for s in (number, number + 1))
    turns = lcm(here, there)
    if not shape.shares:
        return turns
    one, other = (np.array(shape.patterns[s]) for s in (number, number + 1))
    every = np.arange(turns)
    taken = (one[every % here] == one[0]) & (other[every % there] == other[0])
    return turns / int(taken.sum())


def _hosts(durations: PlanDurations, plan: Plan) -> Iterator[Load]:
    """The compute of each host's devices, spread over its cores where it has fewer of them."""
    cut, cluster = plan.partition, durations.cluster
    cores = shared_cores(durations)
    if cores is None:
        return
    compute = _compute(durations, plan)
    seconds = dict.fromkeys(cores.hosts, 0.0)
    for number, stage in enumerate(cut.stages):
        replicas = len(stage.devices)
        update = durations.update[number] / max(replicas, plan.batch)
        each = compute[number] / replicas + update
        for device, part in zip(stage.devices, stage.parts, strict=True):
            own = compute[number] * part + update if stage.shares else each
            seconds[cluster.host_of(device)] += own / durations.faster(device, number)
    for host, busy in seconds.items():
        yield Load("host", host, busy / cores.each / durations.num_sites)


def _compute(durations: PlanDurations, plan: Plan) -> tuple[float, ...]:
    """Seconds of a microbatch per stage on the slowest of its devices."""
    again = tuple(
        seconds if plan.recompute and not one_way else 0.0
        for seconds, one_way in zip(durations.forward, durations.one_way, strict=True)
    )
    return tuple(map(sum, zip(durations.forward, durations.backward, again, strict=True)))


def most_samples(profile: Profile, cluster: Cluster, plan: Plan) -> float:
    """Samples/s that no simulation of `plan` exceeds: its most loaded stage, cut, link or host,
    never waiting but where it drains; under any schedule where it names none. Raises
    `InvalidInput` where the plan has no steady state."""
    durations = PlanDurations.of(profile, cluster, plan)
    busy = max(busiest(durations, plan, steady_shape(plan)), link_seconds(durations, plan))
    worst = max(busy, drained(durations, plan))
    return plan.microbatch / worst if worst else inf


def compute_bound(profile: Profile, cluster: Cluster, plan: Plan) -> float:
    """Samples/s that `most_samples` does not exceed: of the pipeline rank whose devices together
    take longest for its layers."""
    cut = plan.partition
    in_front = profile.in_order(cut.order).compute_in_front
    seconds = [0.0] * cut.pipeline_size
    for number, stage in enumerate(cut.stages):
        seconds[cut.pipeline_rank_of(number)] += in_front[stage.stop] - in_front[stage.first]
    speeds = (cluster.speed_of(stage.devices) for stage in cut.stages[: cut.pipeline_size])
    worst = max(map(truediv, seconds, speeds))
    return plan.microbatch / worst if worst else inf


def busiest(durations: PlanDurations, plan: Plan, shape: Shape) -> float:
    """Seconds per microbatch of the most loaded stage, cut or host: no steady state is faster."""
    return max(load.seconds for load in loads(durations, plan, shape))


def drains(name: str) -> bool:
    """Whether the schedule, "" for any, is known to drain at every update."""
    return bool(name) and schedule(name).flushes and schedule(name).order is None


def drained(durations: PlanDurations, plan: Plan) -> float:
    """Seconds per microbatch below which no plan comes that drains at every update, however its
    microbatches are ordered: (m + p - 1) (F + B) of equal stages.

    Whatever stage is looked at, the first microbatch of a batch has to come through the stages in
    front of it, a replica then computes its share of them, and the last gradient goes back to the
    first stage, which updates before it begins anew. Only what is computed is counted, on the
    fastest device of each stage, and of a backward in halves that of the input; of several
    pipelines each drains by itself. 0 where a plan does not drain, or no gradient comes back to
    some stage.
    """
    if not drains(plan.schedule) or any(durations.one_way):
        return 0.0
    faster = tuple(
        max(durations.cluster.speeds(stage.devices)) / durations.pace(number)
        for number, stage in enumerate(plan.partition.stages)
    )
    is_split = schedule(plan.schedule).splits(plan.kept_order)
    backwards = durations.backward_input if is_split else durations.backward
    ways = zip(durations.forward, backwards, faster, strict=True)
    there, longest = 0.0, 0.0
    for number, (forward, backward, speed) in enumerate(ways):
        stage = plan.partition.stages[number]
        again = forward if plan.recompute else 0.0
        share = -(-plan.batch // stage.replicas) / speed
        if stage.shares:
            share = _most_of_a_batch(durations, plan, number)
        longest = max(longest, there + share * (forward + backward + again))
        there += (forward + backward) / speed
    group = tuple(range(plan.partition.replicas[0]))
    update = durations.update[0] / faster[0] + durations.exposed(0, group)
    return (longest + update) / (plan.batch * plan.num_pipelines)


def _most_of_a_batch(durations: PlanDurations, plan: Plan, number: int) -> float:
    """Microbatches of the slowest device of stage `number` that take as long as what its replicas
    have of a batch."""
    stage, cluster = plan.partition.stages[number], durations.cluster
    return max(
        int(plan.batch * part) * durations.pace(number) / cluster.at(device).speed
        for device, part in zip(stage.devices, stage.parts, strict=True)
    )


WAITING = "Waiting adds"
"""How the sentence on what a pipeline waits begins."""
FEW = 0.02
"""Waiting that takes a smaller share of the time is not worth a sentence."""


def waits(durations: PlanDurations, plan: Plan, shape: Shape, seconds: float) -> str:
    """A sentence on what of `seconds` per microbatch the bottleneck does not explain; "" where that
    is little."""
    worst = busiest(durations, plan, shape)
    more = seconds - worst
    if len(plan.partition.stages) == 1 or more < FEW * seconds:
        return ""
    is_drain = drained(durations, plan) - worst > more / 2
    cause = (
        "the pipeline fills and drains at every update"
        if is_drain
        else "for messages, other stages and updates"
    )
    share = percent_text(more / seconds)
    return f"{WAITING} {seconds_text(more)} per microbatch, {share}: {cause}."


def explain(durations: PlanDurations, plan: Plan, shape: Shape) -> str:
    """One sentence with numbers: what the bottleneck is, and the bytes that are at stake."""
    whole = sum(_compute(durations, plan))
    num_devices = plan.partition.num_devices
    gradients = bytes_text(sum(durations.parameter_bytes))
    of_site = " of each site" if plan.is_apart else ""
    if num_devices == 1:
        inside = " inside a site" if plan.is_apart else ""
        return (
            f"One device{of_site} runs the whole model: {seconds_text(whole)} per microbatch, "
            f"nothing sent{inside}."
        )
    if len(plan.partition.stages) == 1:
        sync = durations.all_reduce(0, shape.group_of(0)) + durations.gathering[0]
        what = "gradients and new weights" if plan.shard_state else "gradients"
        split = (
            f", its part of {count_text(len(plan.splits), 'split layer')}" if plan.splits else ""
        )
        return (
            f"Each of {num_devices} devices{of_site} runs the whole model{split}: "
            f"{seconds_text(whole)} of compute per microbatch, then {seconds_text(sync)} to "
            f"synchronise {gradients} of {what}."
        )
    worst = max(loads(durations, plan, shape), key=lambda load: load.seconds)
    return (
        f"{_named(worst, durations, plan, shape)}; under data parallelism {gradients} of "
        f"gradients would be synchronised at every update."
    )


def _named(load: Load, durations: PlanDurations, plan: Plan, shape: Shape) -> str:
    if load.of == "host":
        cluster = durations.cluster
        ranks = sum(cluster.host_of(device) == load.number for device in durations.devices)
        return (
            f"The cores of host {load.number} are the bottleneck: {ranks} devices take turns on "
            f"{cluster.levels[0].cores} of them, {seconds_text(load.seconds)} per microbatch"
        )
    if load.of == "cut":
        sent = durations.message_bytes(Message(Flow.ACTIVATION, load.number, 0))
        ways = "one way" if durations.one_way[load.number] else "each way"
        one, other = (
            durations.cluster.host_of(durations.device(shape.rank_of(stage, 0)))
            for stage in (load.number, load.number + 1)
        )
        place = f" (hosts {one} and {other})" if one != other else ""
        return (
            f"The link between stages {load.number} and {load.number + 1}{place} is the "
            f"bottleneck: {seconds_text(load.seconds)} for {bytes_text(sent)} {ways} per microbatch"
        )
    held = plan.partition.held_by(load.number)
    compute = _compute(durations, plan)
    own, whole = sum(compute[stage] for stage in held), sum(compute)
    are, names = "are" if len(held) > 1 else "is", " and ".join(map(str, held))
    stages = f"tage{'s' if len(held) > 1 else ''} {names}"
    share = percent_text(own / (whole or 1.0))
    part = f"{share} of compute ({seconds_text(own)} of {seconds_text(whole)})"
    replicas = plan.partition.replicas[load.number]
    if replicas == 1:
        return f"S{stages} {are} the bottleneck: {part}"
    group = shape.group_of(load.number)
    sync = sum(durations.all_reduce(stage, group) + durations.gathering[stage] for stage in held)
    gradients = bytes_text(sum(durations.parameter_bytes[stage] for stage in held))
    if sync / max(replicas, plan.batch) > own / replicas:
        return (
            f"Synchronising s{stages} is the bottleneck: {replicas} replicas exchange "
            f"{gradients} of gradients in {seconds_text(sync)} at every update, more "
            f"than their {part}"
        )
    return (
        f"S{stages} {are} the bottleneck: {part}, shared by {replicas} replicas that synchronise "
        f"{gradients} in {seconds_text(sync)}: {seconds_text(load.seconds)} per microbatch"
    )
