"""What a plan would gain if its stages split layers by channels over their replicas (AccPar).

Where a question asks for it the plan has those that runs split; else this is a calculation, for
the reasons of a plan.
"""

from dataclasses import dataclass, replace

from backend.pipeline.schedules.catalog import schedule
from backend.planning.channels.checks import can_split
from backend.planning.channels.held import as_held
from backend.planning.channels.layer_split import LayerSplit
from backend.planning.channels.search import cheapest
from backend.planning.channels.units import SPLIT_KINDS, units
from backend.planning.plan import Plan
from backend.prediction.predict import predict
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.split_profile import SplitStage, replicas_of, split_profile
from backend.profiles.profile import Profile
from backend.units import bytes_text, count_text

PRICES = (1.0, 0.5, 0.25)
"""What a second of summing gradients counts, by which types are found; each is simulated. At 1
none is hidden by a backward, at less a part."""
LEAST_GAIN = 1.01
"""Of the rate, below which a split is not worth telling (ours)."""
RUNNABLE = frozenset({"Linear", "Embedding"})
"""Kinds of layers that runs split."""
NAMED = 4
"""Layers that a reason names."""


@dataclass(frozen=True, slots=True)
class ChannelSplits:
    """The stages of a plan with types for their layers, the rate of that, and how many times the
    plan's it is. `profile` is that by which the stages count their layers."""

    profile: Profile
    stages: tuple[SplitStage, ...]
    samples_per_second: float
    gain: float


def channel_splits(
    question: Question, plan: Plan, kinds: frozenset[str] = SPLIT_KINDS
) -> ChannelSplits | None:
    """The fastest of the types that `PRICES` find; None where none is faster, or where replicas
    would not meet: under schedules that do not flush (but for a stage alone), with chunks,
    parallel pipelines, recomputation or sharded state. Layers of `kinds` alone are split. Simulates
    up to four times."""
    if not _in_step(plan):
        return None
    plain = question.predict(plan)
    profile = question.profile_of(plan).in_order(plan.partition.order)
    there = replace(plan, partition=replace(plan.partition, order=()))
    best: ChannelSplits | None = None
    for price in PRICES:
        stages = tuple(
            _stage(question, profile, plan, number, price, kinds)
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


def with_splits(question: Question, found: Prediction) -> Prediction:
    """The plan that was `found`, with those of its layers split that make it faster and that runs
    split, where the question asks for that. Each has to pay by what a run exchanges, too."""
    plan = found.plan
    if not question.split_channels or not can_split(plan):
        return found
    chosen = channel_splits(question, plan, RUNNABLE)
    if chosen is None:
        return found
    names = [layer.name for layer in chosen.profile.layers]
    pairs = [(names[unit.first], kind) for stage in chosen.stages for unit, kind in stage.split]
    splits = tuple(LayerSplit(name, kind) for name, kind in pairs if names.count(name) == 1)
    split = question.predict(replace(plan, splits=splits))
    for each in splits:
        fewer = tuple(other for other in split.plan.splits if other != each)
        without = question.predict(replace(plan, splits=fewer))
        if without.samples_per_second >= split.samples_per_second:
            split = without
    return split if split.samples_per_second > found.samples_per_second else found


def split_reason(question: Question, plan: Plan) -> str:
    """Which layers of which stages are split, or would be, and what that gains; "" where
    nothing."""
    if plan.splits:
        whole = question.predict(replace(plan, splits=())).samples_per_second
        gain = question.predict(plan).samples_per_second / (whole or 1.0)
        names, profile = {split.layer for split in plan.splits}, question.profile_of(plan)
        told = _named([f"{_called(split.layer)} by {split.kind}" for split in plan.splits])
        copied, sliced = (
            sum(layer.parameter_bytes for layer in each.layers if layer.name in names)
            for each in (profile, as_held(profile, plan))
        )
        return (
            f"Split by channels over the replicas instead of copied: {told}; {gain:.2f} times as "
            f"many samples/s by calculation, and the largest replicas hold {bytes_text(sliced)} of "
            f"these weights instead of {bytes_text(copied)}."
        )
    found = channel_splits(question, plan)
    if found is None:
        return ""
    told = "; ".join(
        f"of stage {number} {_layers_text(found.profile, stage)}"
        for number, stage in enumerate(found.stages)
        if any(stage.split)
    )
    split = [(stage, unit) for stage in found.stages for unit, _ in stage.split]
    copied = sum(unit.weights for _, unit in split)
    kept = sum(max(stage.replicas.parts) * unit.weights for stage, unit in split)
    return (
        f"Split by channels over the replicas instead of copied, {told}: that would "
        f"make {found.gain:.2f} times as many samples/s by calculation, and the largest replicas "
        f"would hold {bytes_text(kept)} of these weights instead of {bytes_text(copied)}. "
        f"{_who_runs(question, plan)}"
    )


def _who_runs(question: Question, plan: Plan) -> str:
    """Whether a run can split them."""
    if can_split(plan) and question.split_channels:
        return "By what runs exchange, none of those that they split pays."
    if can_split(plan):
        return (
            "Runs split linear and embedding layers where a plan is made so "
            "(--split-channels, More options)."
        )
    return (
        "Runs split linear and embedding layers alone, under schedules that flush with whole "
        "backwards, of replicas with equal shares."
    )


def _layers_text(profile: Profile, stage: SplitStage) -> str:
    """The layers by how they are split: "fc6 by output channels and fc7 by input channels"."""
    names = [(_called(profile.layers[unit.first].name), kind) for unit, kind in stage.split]
    return _named([f"{name} by {kind}" for name, kind in names])


def _called(name: str) -> str:
    """A layer in a sentence: one of a sequence is called by its number alone."""
    return f"layer {name}" if name.isdecimal() else name


def _named(told: list[str]) -> str:
    named = told[:NAMED]
    if len(told) > NAMED:
        named.append(count_text(len(told) - NAMED, "more layer"))
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
    question: Question,
    profile: Profile,
    plan: Plan,
    number: int,
    price: float,
    kinds: frozenset[str],
) -> SplitStage:
    stage = plan.partition.stages[number]
    found = tuple(
        replace(unit, may_split=unit.may_split and profile.layers[unit.first].kind in kinds)
        for unit in units(profile, stage.first, stage.stop)
    )
    replicas = replicas_of(question.cluster, plan, number)
    types = cheapest(found, replicas, price if stage.replicas > 1 else 0.0)
    return SplitStage(found, types, replicas)
