"""A plan on a cluster: simulates the program that will run, and counts its bytes."""

from collections.abc import Sequence
from itertools import chain

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput
from backend.pipeline.actions import Action, AllReduce, Backward, BackwardWeight, Send, Step
from backend.pipeline.bubbles import bubble
from backend.pipeline.lower import lower
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.timeline import Timeline
from backend.planning.memory import check_memory, stage_memory
from backend.planning.plan import Plan
from backend.prediction.durations import PlanDurations
from backend.prediction.prediction import Prediction
from backend.prediction.shapes import microbatch_unit, steady_shape, training_shape
from backend.profiles.profile import Profile


def predict(
    profile: Profile, cluster: Cluster, plan: Plan, optimizer: str = "momentum"
) -> Prediction:
    """What `plan` does on `cluster` in its steady state, on `profile`'s microbatches.

    Raises `PlanDoesNotFit` where a stage needs more memory than a device has, `InvalidInput`
    where the plan is not one for this profile and cluster.
    """
    check_plan(profile, cluster, plan)
    shape = steady_shape(plan)
    memory = memory_bytes(profile, plan, shape, optimizer)
    check_memory(memory, cluster.device)
    durations = PlanDurations(profile, plan.partition, cluster)
    program = lower(schedule(plan.schedule), shape)
    timeline = simulate(program, durations)
    seconds = plan.batch * seconds_per_microbatch(timeline, shape, microbatch_unit(plan))
    return Prediction(
        plan=plan,
        seconds_per_minibatch=seconds,
        samples_per_second=plan.batch * plan.microbatch / seconds if seconds else 0.0,
        bubble=bubble(timeline),
        sent_bytes=plan.batch * _sent_bytes(program, durations) / shape.microbatches,
        memory_bytes=memory,
        stage_seconds=tuple(map(sum, zip(durations.forward, durations.backward, strict=True))),
        staleness=max(map(_staleness, program.ranks)),
        versions=_live_versions(plan, shape),
    )


def predicted_program(
    profile: Profile, cluster: Cluster, plan: Plan, num_microbatches: int
) -> tuple[Program, Timeline]:
    """The program of a segment of `num_microbatches` (`training_shape` says how many of them
    are used) and its predicted timeline. Raises as `predict`, but does not check memory."""
    check_plan(profile, cluster, plan)
    program = lower(schedule(plan.schedule), training_shape(plan, num_microbatches))
    return program, simulate(program, PlanDurations(profile, plan.partition, cluster))


def check_plan(profile: Profile, cluster: Cluster, plan: Plan) -> None:
    """Raise `InvalidInput` where `plan` was not made for `profile` and `cluster`."""
    covered = plan.partition.stages[-1].stop
    if covered != len(profile.layers):
        raise InvalidInput(
            f"the plan covers {covered} layers, the profile has {len(profile.layers)}"
        )
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
    """Peak bytes per stage (one replica), by the bounds that the schedule promises."""
    member = schedule(plan.schedule)
    seats = [shape.seats[shape.group_of(stage)[0]] for stage in range(shape.num_stages)]
    return tuple(
        stage_memory(profile, stage, member.live(seat), member.in_flight(seat), optimizer)
        for stage, seat in zip(plan.partition.stages, seats, strict=True)
    )


def _live_versions(plan: Plan, shape: Shape) -> tuple[int, ...]:
    member = schedule(plan.schedule)
    groups = (shape.group_of(stage) for stage in range(shape.num_stages))
    return tuple(member.live(shape.seats[group[0]]) for group in groups)


def seconds_per_microbatch(timeline: Timeline, shape: Shape, unit: int) -> float:
    """Slope over the second half of the segment, at the last stage: it drains last, so
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


def _sent_bytes(program: Program, durations: PlanDurations) -> float:
    """Bytes that all ranks send in the whole segment."""
    total = 0.0
    for action in chain.from_iterable(program.ranks):
        if isinstance(action, Send):
            total += durations.message_bytes(action.message)
        elif isinstance(action, AllReduce):
            total += durations.reduced_bytes(action.stage, len(action.group))
    return total


def _staleness(actions: Sequence[Action]) -> int:
    """Most updates that a rank makes between a forward and its backward."""
    newest = worst = 0
    for action in actions:
        if isinstance(action, Step):
            newest = action.version
        elif isinstance(action, Backward | BackwardWeight):
            worst = max(worst, newest - action.version)
    return worst
