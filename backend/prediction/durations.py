"""Seconds of every action of a plan's program, from the profile and the cluster's links."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from backend.cluster.cluster import Cluster
from backend.cluster.ring import RingLinks, ring
from backend.pipeline.actions import (
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Collective,
    Compute,
    Flow,
    Forward,
    Message,
    Recompute,
    Step,
)
from backend.pipeline.links import SumPart, exposed
from backend.pipeline.schedules.catalog import schedule
from backend.planning.codec_of_sums import CodecOfSums
from backend.planning.local_heads import headed
from backend.planning.plan import Partition, Plan
from backend.planning.sites import Sites
from backend.prediction.cut_messages import CutMessages
from backend.prediction.gradient_sums import BUCKET_BYTES, StageSums
from backend.prediction.site_exchange import SiteExchange
from backend.prediction.weight_update_cost import PLAIN, WeightUpdateCost
from backend.profiles.layer import LayerSums
from backend.profiles.profile import Profile

TURN_COST = 1.15
"""How many times as long as profiled a rank computes that takes turns with others on a core: caches
are emptied, cores left idle between turns (docs/evidence/prediction.md)."""
CORE_COST = 1.03
"""The same of a rank with a core to itself: what it does between layers, what messages leave."""

UpdateCosts = tuple[WeightUpdateCost, ...]


@dataclass(frozen=True)
class PlanDurations:
    """The simulator's `Durations` for one stage per pipeline rank; rank r sits on `devices[r]`.

    Compute is the profile's seconds divided by the device's speed, with what messages cost the
    processor, and what `update_costs` says (() = each update applies one gradient, in place).
    Replicas sum their gradients in buckets of `bucket_bytes`; those whose state is `sharded` update
    a part each and gather the others, within their step. Not known here: who shares cores or a link
    (`shared_links`), what ranks lose by sharing a memory bus, how long thresholds take to choose.
    """

    profile: Profile
    partition: Partition
    cluster: Cluster
    update_costs: UpdateCosts = ()
    sharded: bool = False
    bucket_bytes: int = BUCKET_BYTES
    codecs: tuple[str, ...] = ()
    local: bool = False
    sites: Sites | None = None
    num_sites: int = 1
    codec_of_sums: CodecOfSums | None = None

    @classmethod
    def of(
        cls, profile: Profile, cluster: Cluster, plan: Plan, costs: UpdateCosts = ()
    ) -> "PlanDurations":
        """Those of a plan; one that names no schedule is of any that has one loss."""
        local = bool(plan.schedule) and schedule(plan.schedule).local
        own = plan.shard_state, BUCKET_BYTES, plan.codecs, local, plan.sites, plan.num_sites
        judged = headed(profile, plan)
        return cls(judged, plan.partition, cluster, costs, *own, plan.codec_of_sums)

    @cached_property
    def plain(self) -> "PlanDurations":
        """Those of the same plan without codecs."""
        return replace(self, codecs=(), codec_of_sums=None)

    @cached_property
    def devices(self) -> tuple[int, ...]:
        return self.partition.rank_devices(self.num_sites, self.sites.devices if self.sites else 0)

    def device(self, rank: int) -> int:
        return self.devices[rank % len(self.devices)]

    def pace(self, stage: int) -> float:
        """Speed of the slowest device that holds `stage`."""
        return self._paces[stage]

    @cached_property
    def _paces(self) -> tuple[float, ...]:
        return tuple(min(self.cluster.speeds(stage.devices)) for stage in self.partition.stages)

    def faster(self, device: int, stage: int) -> float:
        """How many times as fast as the seconds of `stage` `device` computes."""
        return self.cluster.at(device).speed / self.pace(stage) / self._core_cost

    @cached_property
    def _core_cost(self) -> float:
        if self.cluster.levels[0].cores is None:
            return 1.0
        return TURN_COST if self.takes_turns else CORE_COST

    @cached_property
    def takes_turns(self) -> bool:
        """Whether a host has more of the ranks than cores."""
        cores = self.cluster.levels[0].cores
        hosts = list(map(self.cluster.host_of, self.devices))
        return cores is not None and any(hosts.count(one) > cores for one in set(hosts))

    def compute(self, rank: int, action: Compute) -> float:
        """Seconds of `action`."""
        faster = self.faster(self.device(rank), action.stage)
        match action:
            case Recompute(stage):
                return self.forward[stage] / faster
            case Forward(stage):
                handled = self._handled(stage, Flow.ACTIVATION, stage - 1, stage)
                return (self.forward[stage] + handled) / faster
            case Backward(stage):
                whole = self.backward[stage] + self.added[stage]
                handled = self._handled(stage, Flow.GRADIENT, stage, stage - 1)
                return (whole + handled) / faster
            case BackwardInput(stage):
                handled = self._handled(stage, Flow.GRADIENT, stage, stage - 1)
                return (self.backward_input[stage] + handled) / faster
            case BackwardWeight(stage):
                return (self.backward_weight[stage] + self.added[stage]) / faster
            case Step(stage):
                if self._sharers[stage] > 1:  # all end with the slowest
                    return self.step[stage] + self.gathering[stage]
                return self.step[stage] / faster

    def _handled(self, stage: int, flow: Flow, before: int, behind: int) -> float:
        """Seconds in which `stage`'s processor takes in and reads a bundle over the cut behind
        stage `before`, and codes and posts one over the cut behind `behind`."""
        cuts = self.cut_messages
        return (cuts.receiving(before, flow) + cuts.sending(behind, flow)) / self.pace(stage)

    def transfer(self, message: Message, source: int, to: int) -> float:
        """Latency plus bytes over the bandwidth of the link between the two devices."""
        link = self.cluster.link(self.device(source), self.device(to))
        return link.latency + self.message_bytes(message) / link.bandwidth

    def all_reduce(self, stage: int, group: tuple[int, ...]) -> float:
        """Seconds of a sum of a stage's gradients at once."""
        return self.sums.seconds(stage, self._ring(group))

    def exposed(self, stage: int, group: tuple[int, ...]) -> float:
        """Of the same in buckets, what the last backward before it does not hide."""
        return exposed(self.pieces(stage, group))

    def pieces(self, stage: int, group: tuple[int, ...]) -> tuple[SumPart, ...]:
        """The buckets of a stage's gradients: of the weights' half, where it runs by itself."""
        is_split = self._update_costs[stage].is_split
        backward = self.backward_weight[stage] if is_split else self.backward[stage]
        if len(group) == 1:
            return ()
        of_stage = self.parts[stage], backward, self._ring(group), self.bucket_bytes
        return self.sums.pieces(stage, *of_stage)

    def _ring(self, group: tuple[int, ...]) -> RingLinks:
        if group not in self._rings:
            devices = self.devices
            members = [devices[rank % len(devices)] for rank in group]
            self._rings[group] = ring(self.cluster, members)
        return self._rings[group]

    @cached_property
    def _rings(self) -> dict[tuple[int, ...], RingLinks]:
        return {}

    def collective(self, action: Collective) -> float:
        """Seconds of `action` once all have come; an averaging takes as long as an update, for
        both pass once over the stage's weights (ours); what sites send goes over their links."""
        match action:
            case AllReduce(stage, group):
                return self.exposed(stage, group)
            case Average(stage, group):
                passing, found = self.update[stage] * self._sharers[stage], self.exchange
                return found.seconds(stage, passing, self._ring(group)) if found else passing

    def message_bytes(self, message: Message) -> int:
        """Bytes of the bundle on the wire."""
        return self.cut_messages.bytes(message)

    @cached_property
    def cut_messages(self) -> CutMessages:
        return CutMessages(self.ordered, self.partition, self.codecs, self.local)

    @property
    def one_way(self) -> tuple[bool, ...]:
        return self.cut_messages.one_way

    def reduced_bytes(self, stage: int, members: int) -> float:
        """Bytes that one of `members` ranks sends in one sum, and to gather shared state."""
        return self.sums.sent(stage, members) * (1.5 if self._sharers[stage] > 1 else 1)

    @cached_property
    def sums(self) -> StageSums:
        return StageSums.of(self.parameter_bytes, self.codec_of_sums, self.profile, self._paces)

    @cached_property
    def exchange(self) -> SiteExchange | None:
        return SiteExchange.of(self.sites, self.profile, self.parameter_bytes)

    @cached_property
    def ordered(self) -> Profile:
        """The profile with its layers as the stages count them."""
        return self.profile.in_order(self.partition.order)

    @cached_property
    def forward(self) -> tuple[float, ...]:
        """Seconds of one microbatch per stage, on the slowest of its devices; `backward` and
        `update` likewise."""
        return self._seconds([part.forward for part in self.parts])

    @cached_property
    def backward(self) -> tuple[float, ...]:
        return self._seconds([part.backward for part in self.parts])

    @cached_property
    def backward_input(self) -> tuple[float, ...]:
        """The input's half of a backward, a half where that was not measured; none for the first
        stage and behind a one-way cut."""
        halves = [part.backward_input for part in self.parts]
        asked = (False, *(not one_way for one_way in self.one_way[:-1]))
        gives = zip(asked, halves, strict=True)
        return self._seconds([half if is_asked else 0.0 for is_asked, half in gives])

    @cached_property
    def backward_weight(self) -> tuple[float, ...]:
        """The weights' half; where it was not measured, what the other one leaves."""
        halves = self._seconds([part.backward_weight for part in self.parts])
        rests = zip(halves, self.backward, self.backward_input, strict=True)
        return tuple(half if half and other else whole - other for half, whole, other in rests)

    @cached_property
    def update(self) -> tuple[float, ...]:
        shared = zip(self.parts, self._sharers, strict=True)
        return self._seconds([part.update / sharers for part, sharers in shared])

    @cached_property
    def gathering(self) -> tuple[float, ...]:
        """Seconds of the ring's round in which replicas gather what each updated, else 0."""
        return tuple(
            ring(self.cluster, stage.devices).seconds(num_bytes, 1) if sharers > 1 else 0.0
            for stage, num_bytes, sharers in zip(
                self.partition.stages, self.parameter_bytes, self._sharers, strict=True
            )
        )

    @cached_property
    def _sharers(self) -> tuple[int, ...]:
        """Per stage the ranks that share its state."""
        return tuple(s.replicas if self.sharded else 1 for s in self.partition.stages)

    @cached_property
    def added(self) -> tuple[float, ...]:
        """Seconds of a backward in which gradients are added to others, on average."""
        adding = self._seconds([part.adding for part in self.parts])
        kept = zip(adding, self._update_costs, strict=True)
        return tuple(seconds * cost.added for seconds, cost in kept)

    @cached_property
    def step(self) -> tuple[float, ...]:
        """Seconds of an update: in place, or of a new version beside the old one. The mean of
        several gradients reads and writes each once, two thirds of what adding does (ours: memory
        binds both), and so does putting what was gathered into the weights."""
        return self._seconds(
            [
                cost.seconds(part) / sharers + (part.copying if sharers > 1 else 0.0)
                for part, cost, sharers in zip(
                    self.parts, self._update_costs, self._sharers, strict=True
                )
            ]
        )

    @property
    def _update_costs(self) -> tuple[WeightUpdateCost, ...]:
        return self.update_costs or (PLAIN,) * len(self.partition.stages)

    @cached_property
    def parameter_bytes(self) -> tuple[int, ...]:
        return tuple(part.parameter_bytes for part in self.parts)

    @cached_property
    def parts(self) -> tuple[LayerSums, ...]:
        """Of each stage, as profiled."""
        between, stages = self.ordered.between, self.partition.stages
        return tuple(between(stage.first, stage.stop) for stage in stages)

    def _seconds(self, profiled: Sequence[float]) -> tuple[float, ...]:
        return tuple(seconds / self.pace(stage) for stage, seconds in enumerate(profiled))
