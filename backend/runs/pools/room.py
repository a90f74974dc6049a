"""How much a cluster has, as one of its users sees it."""

from dataclasses import dataclass

from backend.cluster.cluster import Cluster, Device, Level
from backend.errors import InvalidInput

INSIDE, BETWEEN = 12e9, 1.25e9
"""Bytes/s that are assumed of the links in a machine and between two: PCIe and 10 Gbit/s, as in
PipeDream's Cluster-A. No cluster's queue tells them."""


@dataclass(frozen=True, slots=True)
class Machines:
    """`count` machines of one kind. `free`: devices of each, as many entries as machines, that no
    job holds; 0 for a machine that takes no jobs."""

    device: Device
    devices: int
    free: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.free)


@dataclass(frozen=True, slots=True)
class PoolRoom:
    """`machines` by their kinds, the most first. `longest`: seconds a job may take, 0 = any."""

    machines: tuple[Machines, ...]
    longest: float = 0.0

    @property
    def total(self) -> int:
        """Devices."""
        return sum(kind.count * kind.devices for kind in self.machines)

    @property
    def free(self) -> int:
        """Devices that no job holds."""
        return sum(sum(kind.free) for kind in self.machines)

    def cluster(self, machines: int = 0) -> Cluster:
        """So many machines of the kind with the most devices, to plan for (0 = all of them), joined
        by links that are assumed. Raises `InvalidInput` where there are fewer."""
        if not self.total:
            raise InvalidInput(
                "what the pool has is not known yet", "Look at it: stageflow pool list"
            )
        kind = max(self.machines, key=lambda kind: kind.count * kind.devices)
        if machines > kind.count:
            raise InvalidInput(
                f"the pool has {kind.count} machines with {kind.devices} {kind.device.name}, "
                f"not {machines}",
                "Plan for fewer.",
            )
        levels = [Level(kind.devices, INSIDE)]
        if (machines or kind.count) > 1:
            levels.append(Level(machines or kind.count, BETWEEN))
        return Cluster(tuple(levels), kind.device)
