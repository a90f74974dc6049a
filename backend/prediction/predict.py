"""A plan on a cluster: simulates the program that will run, and counts its bytes."""

import numpy as np

from backend.cluster.cluster import Cluster, Device
from backend.errors import InvalidInput
from backend.pipeline.actions import Backward, BackwardWeight, Flow, Message
from backend.pipeline.columnar.lower import lower_table
from backend.pipeline.columnar.simulate import Times, simulate_table
from backend.pipeline.columnar.table import Kind, Table, unpack
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.timeline import Timeline
from backend.planning.memory import check_memory, stage_memory
from backend.planning.plan import Plan
from backend.prediction.durations import PlanDurations
from backend.prediction.prediction import Prediction
from backend.prediction.shapes import microbatch_unit, steady_shape, training_shape
from backend.prediction.sharing import shared_cores
from backend.prediction.upkeep import upkeep
from backend.prediction.wires import ClusterLinks
from backend.profiles.profile import Profile


def predict(
    profile: Profile, cluster: Cluster, plan: Plan, optimizer: str = "momentum"
) -> Prediction:
    """What `plan` does on `cluster` in its steady state, on `profile`'s microbatches.

    Raises `PlanDoesNotFit` where a stage needs more memory than a device has, `InvalidInput`
    where the plan is not one for this profile, cluster and schedule.
    """
    check_plan(profile, cluster, plan)
    shape = steady_shape(plan)
    rule = schedule(plan.schedule)
    rule.check(shape)
    memory = memory_bytes(profile, plan, shape, optimizer)
    check_memory(memory, smallest_devices(cluster, plan))
    durations = PlanDurations(profile, plan.partition, cluster, upkeep(rule, shape))
    table = lower_table(rule, shape)
    cores, links = shared_cores(cluster, durations), ClusterLinks(cluster, durations)
    times = simulate_table(table, durations, cores, links)
    seconds = plan.batch * _seconds_per_microbatch(times, microbatch_unit(plan))
    return Prediction(
        plan=plan,
        seconds_per_minibatch=seconds,
        samples_per_second=plan.batch * plan.microbatch / seconds if seconds else 0.0,
        bubble=times.bubble(),
        sent_bytes=plan.batch * _sent_bytes(table, durations) / shape.microbatches,
        memory_bytes=memory,
        stage_seconds=tuple(map(sum, zip(durations.forward, durations.backward, strict=True))),
        staleness=_staleness(table),
        versions=_live_versions(plan, shape),
    )


def predicted_program(
    profile: Profile, cluster: Cluster, plan: Plan, num_microbatches: int
) -> tuple[Program, Timeline]:
    """The program of a segment of `num_microbatches` (`training_shape` says how many of them
    are used) and its predicted timeline. Raises as `predict`, but does not check memory."""
    check_plan(profile, cluster, plan)
    rule, shape = schedule(plan.schedule), training_shape(plan, num_microbatches)
    table = lower_table(rule, shape)
    durations = PlanDurations(profile, plan.partition, cluster, upkeep(rule, shape))
    cores, links = shared_cores(cluster, durations), ClusterLinks(cluster, durations)
    times = simulate_table(table, durations, cores, links)
    return unpack(table), times.timeline()


def check_plan(profile: Profile, cluster: Cluster, plan: Plan) -> None:
    """Raise `InvalidInput` where `plan` was not made for `profile` and `cluster`."""
    covered = plan.partition.stages[-1].stop
    if covered != len(profile.layers):
        raise InvalidInput(
            f"the plan covers {covered} layers, the profile has {len(profile.layers)}"
        )
    profile.in_order(plan.partition.order)
    used = {device for stage in plan.partition.stages for device in stage.devices}
    if not used <= set(range(cluster.num_devices)):
        raise InvalidInput(
            f"the plan uses device {max(used)}, the cluster has devices 0 to "
            f"{cluster.num_devices - 1}"
        )
    if plan.batch < 1 or plan.microbatch < 1:
        raise InvalidInput(f"batch {plan.batch} and microbatch {plan.microbatch} must be 1 or more")
    if not schedule(plan.schedule).trains:
        raise InvalidInput(f"schedule {plan.schedule!r} does not train")


def memory_bytes(profile: Profile, plan: Plan, shape: Shape, optimizer: str) -> tuple[float, ...]:
    """Peak bytes of the devices that hold each stage, by the bounds that the schedule promises.

    A device with several chunks holds the weights of all of them, and as many activations as
    its schedule has in flight, counted at its largest chunk. Lanes hold everything each, and
    a reference of the weights together (AvgPipe).
    """
    member, ordered = schedule(plan.schedule), profile.in_order(plan.partition.order)
    totals: list[float] = []
    for position in range(shape.positions):
        seat = shape.seats[shape.group_of(position)[0]]
        stages = [plan.partition.stages[stage] for stage in seat.stages]
        live, held = member.live(seat), member.in_flight(seat)
        fixed = [stage_memory(ordered, s, live, 0, optimizer) for s in stages]
        full = [stage_memory(ordered, s, live, held, optimizer, plan.recompute) for s in stages]
        waiting = max(whole - part for whole, part in zip(full, fixed, strict=True))
        totals.append(plan.lanes * (sum(fixed) + waiting) + _reference(ordered, plan, position))
    return tuple(totals[stage % shape.positions] for stage in range(shape.num_stages))


def _reference(profile: Profile, plan: Plan, position: int) -> float:
    stages = plan.partition.stages[position :: plan.partition.positions]
    if plan.lanes == 1:
        return 0.0
    return float(sum(x.parameter_bytes for s in stages for x in profile.layers[s.first : s.stop]))


def smallest_devices(cluster: Cluster, plan: Plan) -> tuple[Device, ...]:
    """Per stage the device with the least memory that holds it."""
    return tuple(
        min((cluster.at(d) for d in stage.devices), key=lambda device: device.memory or np.inf)
        for stage in plan.partition.stages
    )


def _live_versions(plan: Plan, shape: Shape) -> tuple[int, ...]:
    member = schedule(plan.schedule)
    groups = (shape.group_of(stage) for stage in range(shape.num_stages))
    return tuple(member.live(shape.seats[group[0]]) for group in groups)


def seconds_per_microbatch(timeline: Timeline, shape: Shape, unit: int) -> float:
    """Slope over the second half of a measured segment, at the last stage: it drains last, so
    neither the fill nor the drain is in it."""
    last = shape.num_stages - 1
    half = shape.microbatches // unit // 2 * unit
    ends = [0.0, 0.0]
    for span in timeline.spans:
        action = span.action
        if isinstance(action, Backward | BackwardWeight) and action.stage == last:
            second = action.microbatch >= half
            ends[second] = max(ends[second], span.end)
    return (ends[1] - ends[0]) / (shape.microbatches - half)


def _seconds_per_microbatch(times: Times, unit: int) -> float:
    """The same of a simulated one."""
    table, shape = times.table, times.table.shape
    half = shape.microbatches // unit // 2 * unit
    done = (table.kind == Kind.BACKWARD) | (table.kind == Kind.BACKWARD_WEIGHT)
    done &= table.stage == shape.num_stages - 1
    second = table.microbatch[done] >= half
    ends = times.end[done]
    return float(ends[second].max() - ends[~second].max()) / (shape.microbatches - half)


def _sent_bytes(table: Table, durations: PlanDurations) -> float:
    """Bytes that all ranks send in the whole segment."""
    total = 0.0
    for flow, kind in ((Flow.ACTIVATION, Kind.SEND), (Flow.GRADIENT, Kind.SEND + 1)):
        counts = np.bincount(table.stage[table.kind == kind], minlength=table.shape.num_stages)
        for stage in np.flatnonzero(counts).tolist():
            total += int(counts[stage]) * durations.message_bytes(Message(flow, stage, 0))
    rows = table.kind == Kind.ALL_REDUCE
    meetings, counts = np.unique(
        np.stack([table.stage[rows], table.peer[rows]]), axis=1, return_counts=True
    )
    for (stage, group), count in zip(meetings.T.tolist(), counts.tolist(), strict=True):
        total += count * durations.reduced_bytes(stage, len(table.groups[group]))
    return total


def _staleness(table: Table) -> int:
    """Most updates that a rank makes between a forward and its backward."""
    worst = 0
    for first, stop in zip(table.bounds[:-1].tolist(), table.bounds[1:].tolist(), strict=True):
        kind, version = table.kind[first:stop], table.version[first:stop]
        newest = np.maximum.accumulate(np.where(kind == Kind.STEP, version, 0))
        back = (kind == Kind.BACKWARD) | (kind == Kind.BACKWARD_WEIGHT)
        worst = max(worst, int((newest - version)[back].max(initial=0)))
    return worst
