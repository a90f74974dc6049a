"""Whether each replica of a plan keeps within the memory of its own device."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from backend.cluster.cluster import Cluster, Device
from backend.pipeline.memory import Holding
from backend.planning.plan import Partition, PlanDoesNotFit, Stage
from backend.units import bytes_text


@dataclass(frozen=True, slots=True)
class DeviceRoom:
    """What replica number `replica` of a stage holds, beside its device."""

    replica: int
    held: Holding
    device: Device

    @property
    def excess(self) -> float:
        """Bytes that it holds more than its device has, below 0 where there is room; minus
        infinity where the device's memory is not known."""
        return -inf if self.device.memory is None else self.held.total - self.device.memory


def least_room(
    held: Sequence[Sequence[Holding]], cluster: Cluster, partition: Partition
) -> tuple[DeviceRoom, ...]:
    """Of each stage the replica that has the least room left, where no memory is known the one that
    holds most. `held` is what each replica of each stage holds (`replica_parts`)."""
    return tuple(
        _least(replicas, stage, cluster)
        for replicas, stage in zip(held, partition.stages, strict=True)
    )


def _least(held: Sequence[Holding], stage: Stage, cluster: Cluster) -> DeviceRoom:
    if not cluster.devices and held.count(held[0]) == len(held):
        return DeviceRoom(0, held[0], cluster.device)
    every = (
        DeviceRoom(replica, own, cluster.at(device))
        for replica, (own, device) in enumerate(zip(held, stage.devices, strict=True))
    )
    return max(every, key=lambda room: (room.excess, room.held.total))


def check_memory(held: Sequence[Sequence[Holding]], cluster: Cluster, partition: Partition) -> None:
    """Raise `PlanDoesNotFit` where a replica needs more memory than its device has; `held` as in
    `least_room`. Unknown memory is not checked."""
    rooms = least_room(held, cluster, partition)
    number = max(range(len(rooms)), key=lambda stage: rooms[stage].excess)
    worst, stage = rooms[number], partition.stages[number]
    if worst.excess > 0 and worst.device.memory is not None:
        who = f"replica {worst.replica} of stage" if stage.shares else "stage"
        raise PlanDoesNotFit(
            f"{who} {number} needs {bytes_text(worst.held.total)} of memory, {worst.device.name} "
            f"has {bytes_text(worst.device.memory)}: {bytes_text(worst.excess)} too much",
            f"It holds {parts_text(worst.held)}. Recompute activations, use fewer microbatches "
            "in flight, more stages, a smaller microbatch, 2BW's two weight versions, or state in "
            "bfloat16 or sharded over replicas.",
        )


def parts_text(held: Holding) -> str:
    """The parts, the largest first: "weights 3.10 GiB, optimizer 2.00 GiB"."""
    parts = sorted(held.named.items(), key=lambda part: -part[1])
    return ", ".join(f"{word} {bytes_text(part)}" for word, part in parts)
