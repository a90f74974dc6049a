"""How much a cluster has, as one of its users sees it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

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
class ForetoldStart:
    """Of a job of so many machines with so many devices each, for as long as a job may take; its
    cluster was `asked` then."""

    machines: int
    devices: int
    expected: datetime
    asked: datetime


@dataclass(frozen=True, slots=True)
class PoolRoom:
    """`machines` by their kinds, the most first. `longest`: seconds a job may take, 0 = any.
    `starts`: when jobs of some shapes would start, the smallest first."""

    machines: tuple[Machines, ...]
    longest: float = 0.0
    starts: tuple[ForetoldStart, ...] = ()

    @property
    def largest(self) -> Machines | None:
        """The kind with the most devices, where there are some."""
        found = max(self.machines, key=lambda kind: kind.count * kind.devices, default=None)
        return found if found and found.count * found.devices else None

    def start_of(self, machines: int, devices: int) -> ForetoldStart | None:
        """That of the smallest of the foretold jobs that is as large; None where none is."""
        fit = (s for s in self.starts if s.machines >= machines and s.devices >= devices)
        return next(fit, None)

    def shapes(self) -> Iterator[tuple[int, int]]:
        """Machines and devices of each of the jobs whose start a cluster is asked for: one device,
        then whole machines of the largest kind, twice as many each time up to all."""
        kind = self.largest
        if kind is None:
            return
        if kind.devices > 1:
            yield 1, 1
        count = 1
        while count < kind.count:
            yield count, kind.devices
            count *= 2
        yield kind.count, kind.devices

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
        kind = self.largest
        if kind is None:
            raise InvalidInput(
                "what the pool has is not known yet", "The page Nodes says what is wrong with it."
            )
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
