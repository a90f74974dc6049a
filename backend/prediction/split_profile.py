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
    are split, () where these are their parts of the samples. `in_a_run`: as runs exchange, else by
    AccPar's calculation, which lets tensors stay split between layers."""

    units: tuple[ChannelUnit, ...]
    kinds: tuple[LayerType, ...]
    replicas: StageReplicas
    channels: tuple[float, ...] = ()
    in_a_run: bool = False

    @property
    def taken(self) -> list[ExchangeSeconds]:
        """What each unit's exchanges take."""
        if not self.in_a_run:
            return exchanges(self.units, self.kinds, self.exchanging)
        channels = self.exchanging.parts
        pairs = zip(self.units, self.kinds, strict=True)
        return [self.replicas.in_a_run(unit, kind, channels) for unit, kind in pairs]

    @property
    def sent(self) -> float:
        """Bytes that a run's replicas exchange for split layers, all of them per update."""
        return sum(self.replicas.sent_in_a_run(unit, kind) for unit, kind in self.split)

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
    found = split_profile(ordered, _planned(ordered, cluster, plan))
    if not order:
        return found
    back = dict(zip(order, found.layers, strict=True))
    return profile.with_layers([back[number] for number in range(len(order))])


def exchanged_bytes(profile: Profile, cluster: Cluster, plan: Plan) -> float:
    """Those that all replicas send per minibatch for the split layers of `plan`."""
    if not plan.splits:
        return 0.0
    ordered = profile.in_order(plan.partition.order)
    return sum(stage.sent for stage in _planned(ordered, cluster, plan))


def _planned(ordered: Profile, cluster: Cluster, plan: Plan) -> list[SplitStage]:
    numbers = range(len(plan.partition.stages))
    return [_planned_stage(ordered, cluster, plan, number) for number in numbers]


def _planned_stage(ordered: Profile, cluster: Cluster, plan: Plan, number: int) -> SplitStage:
    stage, splits = plan.partition.stages[number], {split.layer: split for split in plan.splits}
    found = units(ordered, stage.first, stage.stop)
    chosen = [splits.get(ordered.layers[unit.first].name) for unit in found]
    kinds = tuple(split.kind if split else LayerType.SAMPLES for split in chosen)
    parts = next((split.parts for split in chosen if split), ())
    channels = tuple(part / sum(parts) for part in parts)
    return SplitStage(found, kinds, replicas_of(cluster, plan, number), channels, in_a_run=True)


def split_profile(profile: Profile, stages: Sequence[SplitStage]) -> Profile:
    """`profile` as the plan of `stages` has it: weights that are split have no gradients to sum,
    a replica updates its part of them, and compute takes the exchanges' seconds longer."""
    layers = list(profile.layers)
    for stage in stages:
        once = _once(stage.replicas)
        for unit, _ in stage.split if stage.channels else ():
            layer, times = layers[unit.first], stage.computed
            layers[unit.first] = replace(
                layer, forward=layer.forward * times, backward=layer.backward * times
            )
        for unit, seconds in zip(stage.units, stage.taken, strict=True):
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
