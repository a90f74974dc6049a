"""Seconds of every action of a plan's program, from the profile and the cluster's links."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from backend.cluster.cluster import Cluster
from backend.pipeline.actions import (
    Backward,
    BackwardInput,
    BackwardWeight,
    Compute,
    Flow,
    Forward,
    Message,
    Recompute,
    Step,
)
from backend.planning.plan import Partition
from backend.profiles.profile import Layer, Profile


@dataclass(frozen=True)
class PlanDurations:
    """The simulator's `Durations` for one stage per position; rank r sits on `devices[r]`.

    Compute is the profile's seconds divided by the device's speed. The lanes of a pipeline
    share its devices. Not known here: what ranks lose by sharing a memory bus; cores are
    shared in `sharing`, links in `wires`.
    """

    profile: Profile
    partition: Partition
    cluster: Cluster

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The device of each rank of a lane: positions first, replicas within (`Shape`)."""
        placed = self.partition.stages[: self.partition.positions]
        return tuple(device for stage in placed for device in stage.devices)

    def device(self, rank: int) -> int:
        return self.devices[rank % len(self.devices)]

    def pace(self, stage: int) -> float:
        """Speed of the slowest device that holds `stage`."""
        devices = self.partition.stages[stage].devices
        return min(self.cluster.at(device).speed for device in devices)

    def compute(self, rank: int, action: Compute) -> float:
        """Seconds of `action`."""
        faster = self.cluster.at(self.device(rank)).speed / self.pace(action.stage)
        match action:
            case Forward(stage) | Recompute(stage):
                return self.forward[stage] / faster
            case Backward(stage):
                return self.backward[stage] / faster
            case BackwardInput(stage):
                return self.backward_input[stage] / faster
            case BackwardWeight(stage):
                return (self.backward[stage] - self.backward_input[stage]) / faster
            case Step(stage):
                return self.update[stage] / faster

    def transfer(self, message: Message, source: int, to: int) -> float:
        """Latency plus bytes over the bandwidth of the link between the two devices."""
        link = self.cluster.link(self.device(source), self.device(to))
        return link.latency + self.message_bytes(message) / link.bandwidth

    def all_reduce(self, stage: int, group: tuple[int, ...]) -> float:
        devices = [self.device(rank) for rank in group]
        return ring_seconds(self.cluster, devices, self.parameter_bytes[stage])

    def average(self, stage: int, group: tuple[int, ...]) -> float:
        """As long as an update: both pass once over the stage's weights (ours)."""
        return self.update[stage]

    def message_bytes(self, message: Message) -> int:
        """Bytes of the bundle: an activation leaves behind its stage, a gradient in front."""
        after = message.stage if message.flow is Flow.ACTIVATION else message.stage - 1
        return self.ordered.graph.cut_bytes[self.partition.stages[after].stop - 1]

    def reduced_bytes(self, stage: int, members: int) -> float:
        """Bytes that one of `members` ranks sends in one all-reduce: 2 (r-1)/r |w|."""
        return 2 * (members - 1) / members * self.parameter_bytes[stage]

    @cached_property
    def ordered(self) -> Profile:
        """The profile with its layers as the stages count them."""
        return self.profile.in_order(self.partition.order)

    @cached_property
    def forward(self) -> tuple[float, ...]:
        """Seconds of one microbatch per stage, on the slowest of its devices; `backward` and
        `update` likewise."""
        return self._seconds([sum(layer.forward for layer in part) for part in self._parts])

    @cached_property
    def backward(self) -> tuple[float, ...]:
        return self._seconds([sum(layer.backward for layer in part) for part in self._parts])

    @cached_property
    def backward_input(self) -> tuple[float, ...]:
        """The input's half of a backward; where the profile has not measured it, half counts."""
        return self._seconds(
            [sum(layer.backward_input or layer.backward / 2 for layer in p) for p in self._parts]
        )

    @cached_property
    def update(self) -> tuple[float, ...]:
        return self._seconds([sum(layer.update for layer in part) for part in self._parts])

    def profiled_update(self, stage: int) -> float:
        """Seconds of an update on the profiled device."""
        return sum(layer.update for layer in self._parts[stage])

    @cached_property
    def parameter_bytes(self) -> tuple[int, ...]:
        return tuple(sum(layer.parameter_bytes for layer in part) for part in self._parts)

    @cached_property
    def _parts(self) -> tuple[tuple[Layer, ...], ...]:
        return tuple(
            self.ordered.layers[stage.first : stage.stop] for stage in self.partition.stages
        )

    def _seconds(self, profiled: Sequence[float]) -> tuple[float, ...]:
        return tuple(seconds / self.pace(stage) for stage, seconds in enumerate(profiled))


def ring_seconds(cluster: Cluster, devices: Iterable[int], num_bytes: float) -> float:
    """A sum of `num_bytes` over a ring in device order: 2 (r-1) steps, each of the r-th part
    over its slowest link (Patarasuk and Yuan, JPDC 2009); links are full duplex."""
    ring = sorted(devices)
    links = [cluster.link(a, b) for a, b in zip(ring, (*ring[1:], ring[0]), strict=True)]
    piece = num_bytes / len(ring)
    slowest = max(link.latency + piece / link.bandwidth for link in links)
    return 2 * (len(ring) - 1) * slowest
