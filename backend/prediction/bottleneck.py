"""What holds a plan back: its slowest stage or its slowest cut, and how slow that is."""

from dataclasses import dataclass
from math import lcm

from backend.pipeline.actions import Flow, Message
from backend.pipeline.shape import Shape
from backend.planning.plan import Plan
from backend.prediction.durations import PlanDurations
from backend.units import bytes_text, seconds_text


@dataclass(frozen=True, slots=True)
class Load:
    """`seconds` per microbatch for which a stage, or the cut behind it, is busy."""

    stage: int
    is_cut: bool
    seconds: float


def loads(durations: PlanDurations, plan: Plan, shape: Shape) -> tuple[Load, ...]:
    """Every stage and every cut. A stage's replicas share its microbatches, and synchronise
    once per round (once per batch where the schedule flushes, `plan.batch` > 1); the channels
    of a cut are the pairs of replicas between which microbatches go round robin."""
    found = []
    for number, replicas in enumerate(plan.partition.replicas):
        compute = (durations.forward[number] + durations.backward[number]) / replicas
        rounds = max(replicas, plan.batch)
        update = durations.update[number] + durations.all_reduce(number, shape.group_of(number))
        found.append(Load(number, False, compute + update / rounds))
    for number in range(len(plan.partition.stages) - 1):
        channels = lcm(*plan.partition.replicas[number : number + 2])
        ranks = shape.rank_of(number, 0), shape.rank_of(number + 1, 0)
        message = Message(Flow.ACTIVATION, number, 0)
        found.append(Load(number, True, durations.transfer(message, *ranks) / channels))
    return tuple(found)


def explain(durations: PlanDurations, plan: Plan, shape: Shape) -> str:
    """One sentence with numbers: what the bottleneck is, and the bytes that are at stake."""
    whole = sum(durations.forward) + sum(durations.backward)
    num_devices = plan.partition.num_devices
    gradients = bytes_text(sum(durations.parameter_bytes))
    if num_devices == 1:
        return (
            f"One device runs the whole model: {seconds_text(whole)} per microbatch, nothing sent."
        )
    if len(plan.partition.stages) == 1:
        sync = durations.all_reduce(0, shape.group_of(0))
        return (
            f"Each of {num_devices} devices runs the whole model: {seconds_text(whole)} of compute "
            f"per microbatch, then {seconds_text(sync)} to synchronise {gradients} of gradients."
        )
    worst = max(loads(durations, plan, shape), key=lambda load: load.seconds)
    return (
        f"{_named(worst, durations, plan, shape)}; under data parallelism {gradients} of "
        f"gradients would be synchronised at every update."
    )


def _named(load: Load, durations: PlanDurations, plan: Plan, shape: Shape) -> str:
    if load.is_cut:
        sent = durations.message_bytes(Message(Flow.ACTIVATION, load.stage, 0))
        return (
            f"The link between stages {load.stage} and {load.stage + 1} is the bottleneck: "
            f"{seconds_text(load.seconds)} for {bytes_text(sent)} each way per microbatch"
        )
    compute = [
        there + back for there, back in zip(durations.forward, durations.backward, strict=True)
    ]
    whole = sum(compute)
    text = (
        f"Stage {load.stage} is the bottleneck: {compute[load.stage] / (whole or 1.0):.0%} of "
        f"compute ({seconds_text(compute[load.stage])} of {seconds_text(whole)})"
    )
    replicas = plan.partition.replicas[load.stage]
    if replicas > 1:
        sync = durations.all_reduce(load.stage, shape.group_of(load.stage))
        text += (
            f", shared by {replicas} replicas that synchronise "
            f"{bytes_text(durations.parameter_bytes[load.stage])} in {seconds_text(sync)}"
        )
    return text
