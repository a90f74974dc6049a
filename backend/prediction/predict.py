"""A plan on a cluster: simulates the program that will run, and counts its bytes."""

from dataclasses import replace
from functools import partial

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput
from backend.pipeline.lower import lower
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.sound_order import check_order
from backend.pipeline.timeline import Timeline
from backend.planning.channels.checks import check_split_layers
from backend.planning.codec_of_sums import check_codec_of_sums
from backend.planning.memory import replica_parts
from backend.planning.message_codecs import check_message_codecs
from backend.planning.plan import Plan
from backend.planning.room import check_memory
from backend.prediction.bottleneck import busiest
from backend.prediction.durations import PlanDurations
from backend.prediction.estimated import estimated
from backend.prediction.likely import ESTIMATED, likely_seconds
from backend.prediction.link_loads import link_seconds
from backend.prediction.prediction import Prediction
from backend.prediction.segment import Segment
from backend.prediction.shapes import steady_shape, training_shape, with_one_way
from backend.prediction.split_profile import as_split, exchanged_bytes
from backend.prediction.steady import durations_in, forwards, on_cluster, steady
from backend.profiles.profile import Profile
from backend.profiles.what_if import at_microbatch

MOST_FORWARDS = 80_000
"""Forwards of the shortest segment that shows a plan's steady state, above which it is not
simulated: that takes seconds."""


def predict(
    profile: Profile, cluster: Cluster, plan: Plan, optimizer: str = "momentum"
) -> Prediction:
    """What `plan` does on `cluster` in its steady state, on microbatches of its size: as
    `profile` has them, else in proportion. A plan with very many stages and devices is
    `estimated`.

    Raises `PlanDoesNotFit` where a stage needs more memory than a device has, `InvalidInput`
    where the plan is not one for this profile, cluster and schedule.
    """
    check_plan(profile, cluster, plan)
    profile = at_microbatch(profile, plan.microbatch)
    shape = with_one_way(steady_shape(plan), profile, plan.partition)
    rule = schedule(plan.schedule)
    rule.check(shape)
    held = replica_parts(profile, plan, shape, optimizer)
    check_memory(held, cluster, plan.partition)
    exchanged = exchanged_bytes(profile, cluster, plan)
    profile = as_split(profile, cluster, plan)
    memory = tuple(max(one.total for one in each) for each in held)
    counted = partial(replace, optimizer=optimizer, state_precision=profile.state_precision)
    if forwards(plan, shape) > MOST_FORWARDS:
        durations = PlanDurations.of(profile, cluster, plan)
        guess = _sending(estimated(durations, plan, shape, memory), exchanged)
        low, high = (factor * guess.seconds_per_minibatch for factor in ESTIMATED)
        return counted(replace(guess, seconds_range=(low, high)))
    found = steady(profile, cluster, plan, shape)
    # the slope of a finite segment may still hold a little of its beginning
    least = max(busiest(found.durations, plan, shape), link_seconds(found.durations, plan))
    seconds = plan.batch * max(found.seconds, least)
    told = described(plan, found.segment, found.bubble(shape), found.durations, seconds, memory)
    in_turns = found.durations.takes_turns
    told = replace(told, seconds_range=likely_seconds(seconds, profile, in_turns))
    return counted(_sending(told, exchanged))


def _sending(told: Prediction, more: float) -> Prediction:
    """The same with so many further bytes per minibatch, which no codec makes smaller."""
    plain = None if told.plain_bytes is None else told.plain_bytes + more
    return replace(told, sent_bytes=told.sent_bytes + more, plain_bytes=plain)


def described(
    plan: Plan,
    found: Segment,
    waiting: float,
    durations: PlanDurations,
    seconds: float,
    memory: tuple[float, ...],
) -> Prediction:
    """The figures of a simulated program of which a minibatch takes `seconds`; `waiting` is its
    bubble."""
    num_microbatches = found.shape.num_microbatches
    return Prediction(
        plan=plan,
        seconds_per_minibatch=seconds,
        samples_per_second=plan.batch * plan.microbatch / seconds if seconds else 0.0,
        bubble=waiting,
        sent_bytes=plan.batch * _sent_bytes(found, durations) / num_microbatches,
        plain_bytes=_plain_bytes(found, durations, plan),
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
    profile = as_split(profile, cluster, plan)
    program = lower(schedule(plan.schedule), shape)
    return program, on_cluster(program, profile, cluster, plan)[0]


def predicted_durations(profile: Profile, cluster: Cluster, plan: Plan) -> PlanDurations:
    """The seconds that each action of `plan` is predicted to take. Raises as `predict`, but does
    not check memory."""
    check_plan(profile, cluster, plan)
    profile = at_microbatch(profile, plan.microbatch)
    shape = with_one_way(steady_shape(plan), profile, plan.partition)
    return durations_in(shape, as_split(profile, cluster, plan), cluster, plan)


def check_plan(profile: Profile, cluster: Cluster, plan: Plan) -> None:
    """Raise `InvalidInput` where `plan` was not made for `profile` and `cluster`."""
    covered = plan.partition.stages[-1].stop
    if covered != len(profile.layers):
        raise InvalidInput(
            f"the plan covers {covered} layers, the profile has {len(profile.layers)}"
        )
    check_message_codecs(plan)
    check_codec_of_sums(plan.codec_of_sums, max(plan.partition.replicas), plan.shard_state)
    ordered = profile.in_order(plan.partition.order)
    check_split_layers(plan, [layer.name for layer in ordered.layers])
    if plan.sites is not None:
        plan.sites.check()
    used = set(plan.devices)
    if plan.is_apart and len(used) < len(plan.devices):
        raise InvalidInput(
            f"the sites of {plan.label} overlap: {len(plan.devices)} ranks are on {len(used)} "
            "devices",
            "Let a site begin at least as many devices behind the one before as it has.",
        )
    if not used <= set(range(cluster.num_devices)):
        raise InvalidInput(
            f"the plan uses device {max(used)}, the cluster has devices 0 to "
            f"{cluster.num_devices - 1}"
        )
    if plan.batch < 1 or plan.microbatch < 1:
        raise InvalidInput(f"batch {plan.batch} and microbatch {plan.microbatch} must be 1 or more")
    if not schedule(plan.schedule).trains:
        raise InvalidInput(f"schedule {plan.schedule!r} does not train")
    if plan.kept_order:
        check_order(plan.schedule, plan.shape(plan.batch))


def _sent_bytes(found: Segment, durations: PlanDurations) -> float:
    """Bytes that all ranks send in the whole segment."""
    messages = sum(count * durations.message_bytes(message) for message, count in found.sent)
    sums = sum(count * durations.reduced_bytes(s, members) for s, members, count in found.reduced)
    between = durations.exchange
    if between is None:
        return messages + sums
    exchanged = (count * between.sent(s, members) for s, members, count in found.averaged)
    return messages + sums + sum(exchanged)


def _plain_bytes(found: Segment, durations: PlanDurations, plan: Plan) -> float | None:
    """Bytes per minibatch without codecs; None where there are none."""
    if not (plan.codecs or plan.codec_of_sums):
        return None
    plain = _sent_bytes(found, durations.plain)
    return plan.batch * plain / found.shape.num_microbatches
