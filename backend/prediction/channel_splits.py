"""What a plan would gain if its stages split layers by channels over their replicas (AccPar).

Runs copy layers: this is a calculation, for the reasons of a plan.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from backend.cluster.ring import ring
from backend.pipeline.schedules.catalog import schedule
from backend.planning.channels.exchange import ExchangeSeconds, StageReplicas
from backend.planning.channels.search import cheapest, exchanges
from backend.planning.channels.types import LayerType
from backend.planning.channels.units import ChannelUnit, units
from backend.planning.plan import Plan, Stage
from backend.prediction.predict import predict
from backend.prediction.question import Question
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile
from backend.units import bytes_text, count_text

PRICES = (1.0, 0.5, 0.25)
"""What a second of summing gradients counts, by which types are found; each is simulated. At 1
none is hidden by a backward, at less a part."""
LEAST_GAIN = 1.01
"""Of the rate, below which a split is not worth telling (ours)."""
NAMED = 4
"""Layers that a reason names."""


@dataclass(frozen=True, slots=True)
class SplitStage:
    """A stage, its units and the type of each."""

    units: tuple[ChannelUnit, ...]
    kinds: tuple[LayerType, ...]
    replicas: StageReplicas

    @property
    def split(self) -> Iterator[tuple[ChannelUnit, LayerType]]:
        """Those units that are split by channels."""
        pairs = zip(self.units, self.kinds, strict=True)
        return ((unit, kind) for unit, kind in pairs if kind is not LayerType.SAMPLES)


@dataclass(frozen=True, slots=True)
class ChannelSplits:
    """The stages of a plan with types for their layers, the rate of that, and how many times the
    plan's it is. `profile` is that by which the stages count their layers."""

    profile: Profile
    stages: tuple[SplitStage, ...]
    samples_per_second: float
    gain: float


def channel_splits(question: Question, plan: Plan) -> ChannelSplits | None:
    """The fastest of the types that `PRICES` find; None where none is faster, or where replicas
    would not meet: under schedules that do not flush (but for a stage alone), with chunks,
    parallel pipelines, recomputation or sharded state. Simulates up to four times."""
    if not _in_step(plan):
        return None
    plain = question.predict(plan)
    profile = question.profile_of(plan).in_order(plan.partition.order)
    there = replace(plan, partition=replace(plan.partition, order=()))
    best: ChannelSplits | None = None
    for price in PRICES:
        stages = tuple(
            _stage(question, profile, plan, number, price)
            for number in range(len(plan.partition.stages))
        )
        if not any(any(stage.split) for stage in stages):
            break
        split = split_profile(profile, stages)
        rate = predict(split, question.cluster, there, question.optimizer).samples_per_second
        least = best.samples_per_second if best else LEAST_GAIN * plain.samples_per_second
        if rate > least:
            gain = rate / plain.samples_per_second
            best = ChannelSplits(profile, stages, rate, gain)
    return best


def split_profile(profile: Profile, stages: tuple[SplitStage, ...]) -> Profile:
    """`profile` as the plan of `stages` has it: weights that are split have no gradients to sum,
    a replica updates its part of them, and compute takes the exchanges' seconds longer."""
    layers = list(profile.layers)
    for stage in stages:
        once = _once(stage.replicas)
        taken = exchanges(stage.units, stage.kinds, stage.replicas)
        for unit, seconds in zip(stage.units, taken, strict=True):
            layers[unit.first] = _longer(layers[unit.first], seconds, once)
        for unit, _ in stage.split:
            kept = _updated(stage.replicas)
            layers[unit.first] = replace(layers[unit.first].scaled(weights=kept), parameter_bytes=0)
    return profile.with_layers(layers)


def split_reason(question: Question, plan: Plan) -> str:
    """Which layers of which stages would be split, and what that would gain; "" where nothing."""
    found = channel_splits(question, plan)
    if found is None:
        return ""
    told = [
        f"of stage {number} {_layers_text(found.profile, stage)}"
        for number, stage in enumerate(found.stages)
        if any(stage.split)
    ]
    split = [(stage, unit) for stage in found.stages for unit, _ in stage.split]
    copied = sum(unit.weights for _, unit in split)
    kept = sum(max(stage.replicas.parts) * unit.weights for stage, unit in split)
    return (
        f"Split by channels over the replicas instead of copied, {'; '.join(told)}: that would "
        f"make {found.gain:.2f} times as many samples/s by calculation, and the largest replicas "
        f"would hold {bytes_text(kept)} of these weights instead of {bytes_text(copied)}. "
        "Runs do not split layers."
    )


def _layers_text(profile: Profile, stage: SplitStage) -> str:
    """The layers by how they are split: "fc6 by output channels and fc7 by input channels"."""
    pairs = list(stage.split)
    named = [f"{profile.layers[unit.first].name} by {kind}" for unit, kind in pairs[:NAMED]]
    if len(pairs) > NAMED:
        named.append(count_text(len(pairs) - NAMED, "more layer"))
    *first, last = named
    return f"{', '.join(first)} and {last}" if first else last


def _in_step(plan: Plan) -> bool:
    """Whether replicas of a stage compute their microbatches of a round at the same time."""
    rule, partition = schedule(plan.schedule), plan.partition
    alone = len(partition.stages) == 1
    saves = plan.recompute or plan.shard_state
    plain = partition.chunks == plan.num_pipelines == 1 and not (saves or rule.local)
    return plain and max(partition.replicas) > 1 and (alone or (rule.flushes and rule.batched))


def _stage(
    question: Question, profile: Profile, plan: Plan, number: int, price: float
) -> SplitStage:
    stage = plan.partition.stages[number]
    found, replicas = units(profile, stage.first, stage.stop), _replicas(question, plan, number)
    kinds = cheapest(found, replicas, price if stage.replicas > 1 else 0.0)
    return SplitStage(found, kinds, replicas)


def _replicas(question: Question, plan: Plan, number: int) -> StageReplicas:
    stage: Stage = plan.partition.stages[number]
    cluster, together = question.cluster, plan.partition.rounds[number]
    is_batched = schedule(plan.schedule).batched
    count = max(plan.batch, together) if is_batched else together
    return StageReplicas(
        tuple(map(float, stage.parts)),
        tuple(cluster.at(device).speed for device in stage.devices),
        ring(cluster, stage.devices),
        count,
        -(-count // together),
    )


def _once(replicas: StageReplicas) -> float:
    """Seconds per microbatch on a device of speed 1 that add up to one per update on the replica
    which computes longest."""
    each = zip(replicas.parts, replicas.speeds, strict=True)
    return min(speed / part for part, speed in each) / replicas.num_microbatches


def _longer(layer: Layer, taken: ExchangeSeconds, once: float) -> Layer:
    """With what each of its passes takes longer, in seconds of a device of speed 1."""
    forward, backward = layer.forward + taken.forward * once, taken.backward * once
    halves = layer.backward_input + backward if layer.backward_input else 0.0
    return replace(
        layer, forward=forward, backward=layer.backward + backward, backward_input=halves
    )


def _updated(replicas: StageReplicas) -> float:
    """Of the seconds of an update of all weights what the slowest replica's part takes."""
    shares = (part / speed for part, speed in zip(replicas.parts, replicas.speeds, strict=True))
    return max(shares) * min(replicas.speeds)
