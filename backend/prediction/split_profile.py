"""A profile as a plan that splits layers by channels has it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from backend.cluster.cluster import Cluster
from backend.cluster.ring import ring
from backend.pipeline.schedules.catalog import schedule
from backend.planning.channels.exchange import ExchangeSeconds, StageReplicas
from backend.planning.channels.search import exchanges
from backend.planning.channels.types import LayerType
from backend.planning.channels.units import ChannelUnit, units
from backend.planning.plan import Plan, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile


@dataclass(frozen=True, slots=True)
class SplitStage:
    """A stage, its units and the type of each; `channels` are the replicas' parts of those that
    are split, () where these are their parts of the samples."""

    units: tuple[ChannelUnit, ...]
    kinds: tuple[LayerType, ...]
    replicas: StageReplicas
    channels: tuple[float, ...] = ()

    @property
    def exchanging(self) -> StageReplicas:
        """The replicas by their parts of channels."""
        return replace(self.replicas, parts=self.channels) if self.channels else self.replicas

    @property
    def computed(self) -> float:
        """How many times as long as with equal parts the largest slice computes."""
        return max(self.channels) * len(self.channels) if self.channels else 1.0

    @property
    def split(self) -> Iterator[tuple[ChannelUnit, LayerType]]:
        """Those units that are split by channels."""
        pairs = zip(self.units, self.kinds, strict=True)
        return ((unit, kind) for unit, kind in pairs if kind is not LayerType.SAMPLES)


def as_split(profile: Profile, cluster: Cluster, plan: Plan) -> Profile:
    """`profile` by which the seconds of `plan` are those of its split layers; as it is where the
    plan splits none."""
    if not plan.splits:
        return profile
    order = plan.partition.order
    ordered = profile.in_order(order)
    stages = [_planned(ordered, cluster, plan, n) for n in range(len(plan.partition.stages))]
    found = split_profile(ordered, stages)
    if not order:
        return found
    back = dict(zip(order, found.layers, strict=True))
    return profile.with_layers([back[number] for number in range(len(order))])


def _planned(ordered: Profile, cluster: Cluster, plan: Plan, number: int) -> SplitStage:
    stage, splits = plan.partition.stages[number], {split.layer: split for split in plan.splits}
    found = units(ordered, stage.first, stage.stop)
    chosen = [splits.get(ordered.layers[unit.first].name) for unit in found]
    kinds = tuple(split.kind if split else LayerType.SAMPLES for split in chosen)
    parts = next((split.parts for split in chosen if split), ())
    channels = tuple(part / sum(parts) for part in parts)
    return SplitStage(found, kinds, replicas_of(cluster, plan, number), channels)


def split_profile(profile: Profile, stages: Sequence[SplitStage]) -> Profile:
    """`profile` as the plan of `stages` has it: weights that are split have no gradients to sum,
    a replica updates its part of them, and compute takes the exchanges' seconds longer."""
    layers = list(profile.layers)
    for stage in stages:
        once = _once(stage.replicas)
        taken = exchanges(stage.units, stage.kinds, stage.exchanging)
        for unit, _ in stage.split if stage.channels else ():
            layer, times = layers[unit.first], stage.computed
            layers[unit.first] = replace(
                layer, forward=layer.forward * times, backward=layer.backward * times
            )
        for unit, seconds in zip(stage.units, taken, strict=True):
            layers[unit.first] = _longer(layers[unit.first], seconds, once)
        for unit, _ in stage.split:
            kept = _updated(stage.exchanging)
            layers[unit.first] = replace(layers[unit.first].scaled(weights=kept), parameter_bytes=0)
    return profile.with_layers(layers)


def replicas_of(cluster: Cluster, plan: Plan, number: int) -> StageReplicas:
    """Those of a stage of `plan`."""
    stage: Stage = plan.partition.stages[number]
    together = plan.partition.rounds[number]
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
