"""Two kept plans side by side, as plain values: what differs, and nothing that is the same."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, zip_longest
from math import isclose

from backend.pipeline.codecs.catalog import write_codecs
from backend.planning.plan import Partition
from backend.prediction.same_updates import samples_per_update
from backend.profiles.profile import Profile
from backend.runs.plans import StoredPlan

SAME = 1e-9
"""Of a number: what is closer together is the same, added up in another order."""

Value = bool | int | float | str


@dataclass(frozen=True, slots=True)
class PlanFact:
    """What both plans have, and what it is of the first and of the second. Seconds, bytes."""

    name: str
    first: Value
    second: Value


@dataclass(frozen=True, slots=True)
class MovedLayers:
    """Layers that follow each other, by their names, and their stage in each plan."""

    layers: tuple[str, ...]
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class PlanStage:
    """A stage as predicted: `first_layer` up to `last_layer`, seconds of a microbatch, bytes that
    one replica holds at most, weight versions there."""

    first_layer: str
    last_layer: str
    num_layers: int
    devices: tuple[int, ...]
    seconds: float
    memory_bytes: float
    versions: int


@dataclass(frozen=True, slots=True)
class StagePair:
    """The stages of one number; None where a plan has fewer."""

    stage: int
    first: PlanStage | None
    second: PlanStage | None


@dataclass(frozen=True, slots=True)
class PlanDifferences:
    """`facts` and `stages` are those that differ; `alike` names the facts that do not. `moved` are
    layers of both plans' models."""

    names: tuple[str, str]
    facts: tuple[PlanFact, ...]
    alike: tuple[str, ...]
    moved: tuple[MovedLayers, ...]
    stages: tuple[StagePair, ...]


def plan_differences(
    first: StoredPlan, first_profile: Profile, second: StoredPlan, second_profile: Profile
) -> PlanDifferences:
    """What differs between two plans, each with its profile."""
    theirs = _facts(second, second_profile)
    facts = [
        PlanFact(name, value, theirs[name]) for name, value in _facts(first, first_profile).items()
    ]
    layers = [
        _layers(profile, kept.plan.partition)
        for kept, profile in ((first, first_profile), (second, second_profile))
    ]
    stages = zip_longest(_stages(first, layers[0]), _stages(second, layers[1]))
    return PlanDifferences(
        names=(first.name, second.name),
        facts=tuple(fact for fact in facts if not _same(fact.first, fact.second)),
        alike=tuple(fact.name for fact in facts if _same(fact.first, fact.second)),
        moved=tuple(_moved(_places(first, layers[0]), _places(second, layers[1]))),
        stages=tuple(
            StagePair(number, one, other)
            for number, (one, other) in enumerate(stages)
            if not _same_stage(one, other)
        ),
    )


def _facts(kept: StoredPlan, profile: Profile) -> dict[str, Value]:
    plan, found, cluster = kept.plan, kept.prediction, kept.cluster
    samples = plan.batch * plan.microbatch
    return {
        "model": profile.name,
        "profile": kept.profile_id,
        "layers": len(profile.layers),
        "measured on": profile.device,
        "cluster": f"{cluster.num_devices} × {cluster.device.name}",
        "bandwidths": ", ".join(f"{level.bandwidth / 1e9:g} GB/s" for level in cluster.levels),
        "planner": plan.planner,
        "schedule": plan.schedule,
        "replicas per stage": plan.partition.label,
        "stages": len(plan.partition.stages),
        "devices used": len(set(plan.devices)),
        "chunks per device": plan.partition.chunks,
        "parallel pipelines": plan.num_pipelines,
        "between sites": plan.sites.words if plan.sites else "",
        "microbatch": plan.microbatch,
        "microbatches per minibatch": plan.batch,
        "samples per update": samples_per_update(plan),
        "run ahead": plan.run_ahead,
        "codec": write_codecs(plan.codecs),
        "codec of sums": plan.codec_of_sums.words if plan.codec_of_sums else "",
        "split layers": ", ".join(f"{each.layer} by {each.kind}" for each in plan.splits),
        "recomputation": plan.recompute,
        "sharded state": plan.shard_state,
        "throughput": found.samples_per_second,
        "seconds per minibatch": found.seconds_per_minibatch,
        "bubble": found.bubble,
        "peak memory": max(found.memory_bytes),
        "sent per minibatch": found.sent_bytes,
        "sent per minibatch without codecs": found.plain_bytes or found.sent_bytes,
        "sent per sample": found.sent_bytes / samples,
        "staleness": found.staleness,
        "weight versions": max(found.versions),
    }


def _layers(profile: Profile, partition: Partition) -> tuple[str, ...]:
    return tuple(layer.name for layer in profile.in_order(partition.order).layers)


def _places(kept: StoredPlan, layers: tuple[str, ...]) -> dict[str, int]:
    """The stage of each layer, in the partition's order."""
    stages = enumerate(kept.plan.partition.stages)
    return {layers[layer]: n for n, stage in stages for layer in range(stage.first, stage.stop)}


def _stages(kept: StoredPlan, layers: tuple[str, ...]) -> Iterator[PlanStage]:
    found = kept.prediction
    for number, stage in enumerate(kept.plan.partition.stages):
        yield PlanStage(
            first_layer=layers[stage.first],
            last_layer=layers[stage.stop - 1],
            num_layers=stage.stop - stage.first,
            devices=stage.devices,
            seconds=found.stage_seconds[number],
            memory_bytes=found.memory_bytes[number],
            versions=found.versions[number],
        )


def _moved(first: Mapping[str, int], second: Mapping[str, int]) -> Iterator[MovedLayers]:
    for (before, after), layers in groupby(first, lambda name: (first[name], second.get(name))):
        if after is not None and before != after:
            yield MovedLayers(tuple(layers), before, after)


def _same_stage(one: PlanStage | None, other: PlanStage | None) -> bool:
    if one is None or other is None:
        return False
    return all(
        _same(getattr(one, name), getattr(other, name)) for name in PlanStage.__dataclass_fields__
    )


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=SAME)
    return one == other
