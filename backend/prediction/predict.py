"""A plan on a cluster: simulates the program that will run, and counts its bytes."""

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput
from backend.pipeline.bubbles import bubble
from backend.pipeline.kinds import Is
from backend.pipeline.lower import lower
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.timeline import Timeline
from backend.planning.memory import check_memory, memory_parts, smallest_devices
from backend.planning.plan import Plan
from backend.prediction.bottleneck import busiest
from backend.prediction.durations import PlanDurations
from backend.prediction.prediction import Prediction
from backend.prediction.segment import Segment, segment
from backend.prediction.shapes import microbatch_unit, steady_shape, training_shape, with_one_way
from backend.prediction.shared_links import ClusterLinks
from backend.prediction.sharing import shared_cores
from backend.prediction.weight_update_cost import weight_update_costs
from backend.profiles.profile import Profile
from backend.profiles.what_if import at_microbatch


def predict(
    profile: Profile, cluster: Cluster, plan: Plan, optimizer: str = "momentum"
) -> Prediction:
    """What `plan` does on `cluster` in its steady state, on microbatches of its size: as
    `profile` has them, else in proportion.

    Raises `PlanDoesNotFit` where a stage needs more memory than a device has, `InvalidInput`
    where the plan is not one for this profile, cluster and schedule.
    """
    check_plan(profile, cluster, plan)
    profile = at_microbatch(profile, plan.microbatch)
    shape = with_one_way(steady_shape(plan), profile, plan.partition)
    rule = schedule(plan.schedule)
    rule.check(shape)
    held = memory_parts(profile, plan, shape, optimizer)
    check_memory(held, smallest_devices(cluster, plan.partition))
    found = segment(plan.schedule, shape)
    timeline, durations = on_cluster(found.program, profile, cluster, plan)
    # the slope of a finite segment may still hold a little of its beginning
    slope = seconds_per_microbatch(timeline, shape, microbatch_unit(plan))
    seconds = plan.batch * max(slope, busiest(durations, plan, shape))
    memory = tuple(holding.total for holding in held)
    return described(plan, found, timeline, durations, seconds, memory)


def on_cluster(
    program: Program, profile: Profile, cluster: Cluster, plan: Plan
) -> tuple[Timeline, PlanDurations]:
    """The program of `plan` on the cluster's clock, and the seconds of its actions."""
    costs = weight_update_costs(schedule(program.schedule), program.shape)
    durations = PlanDurations(profile, plan.partition, cluster, costs, plan.shard_state)
    cores, links = shared_cores(cluster, durations), ClusterLinks(cluster, durations)
    return simulate(program, durations, links, cores), durations


def described(
    plan: Plan,
    found: Segment,
    timeline: Timeline,
    durations: PlanDurations,
    seconds: float,
    memory: tuple[float, ...],
) -> Prediction:
    """The figures of a simulated program of which a minibatch takes `seconds`."""
    num_microbatches = found.program.shape.num_microbatches
    return Prediction(
        plan=plan,
        seconds_per_minibatch=seconds,
        samples_per_second=plan.batch * plan.microbatch / seconds if seconds else 0.0,
        bubble=bubble(timeline),
        sent_bytes=plan.batch * _sent_bytes(found, durations) / num_microbatches,
        memory_bytes=memory,
        stage_seconds=tuple(map(sum, zip(durations.forward, durations.backward, strict=True))),
        staleness=found.staleness,
        versions=found.versions,
    )


def predicted_program(
    profile: Profile, cluster: Cluster, plan: Plan, num_microbatches: int
) -> tuple[Program, Timeline]:
    """The program of a segment of `num_microbatches` (`training_shape` says how many of them
    are used) and its predicted timeline. Raises as `predict`, but does not check memory."""
    check_plan(profile, cluster, plan)
    profile = at_microbatch(profile, plan.microbatch)
    shape = with_one_way(training_shape(plan, num_microbatches), profile, plan.partition)
    program = lower(schedule(plan.schedule), shape)
    return program, on_cluster(program, profile, cluster, plan)[0]


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


def seconds_per_microbatch(timeline: Timeline, shape: Shape, unit: int) -> float:
    """Slope over the second half of a segment, predicted or measured, at the last stage: it
    drains last, so neither the fill nor the drain is in it."""
    rows = timeline.rows
    half = shape.num_microbatches // unit // 2 * unit
    done = rows.are(Is.LEARNING) & (rows.stage == shape.num_stages - 1)
    second, ends = rows.microbatch[done] >= half, timeline.end[done]
    last, middle = ends[second].max(initial=0.0), ends[~second].max(initial=0.0)
    return float(last - middle) / (shape.num_microbatches - half)


def _sent_bytes(found: Segment, durations: PlanDurations) -> float:
    """Bytes that all ranks send in the whole segment."""
    messages = sum(count * durations.message_bytes(message) for message, count in found.sent)
    return messages + sum(
        count * durations.reduced_bytes(stage, members) for stage, members, count in found.reduced
    )
