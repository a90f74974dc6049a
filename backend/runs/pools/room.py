"""How much a cluster has, as one of its users sees it."""

from dataclasses import dataclass

from backend.cluster.cluster import Device


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
