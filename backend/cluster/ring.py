"""A ring over the links of some devices: how long what they send each other takes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from backend.cluster.cluster import Cluster, Level

KEPT = 256
"""Rings that are remembered: it takes long to see which levels join thousands of devices."""


@dataclass(frozen=True, slots=True)
class RingLinks:
    """The different links of a ring, each as (latency, bandwidth), between so many `members`."""

    members: int
    links: frozenset[tuple[float, float]]

    def seconds(self, num_bytes: float, rounds: int = 2) -> float:
        """A sum of `num_bytes`: 2 (r-1) steps, each of the r-th part over its slowest link
        (Patarasuk and Yuan, JPDC 2009); links are full duplex. Its second half alone, one round,
        gathers what each has of them."""
        return rounds * self._steps(num_bytes / self.members)

    def seconds_of_each(self, sizes: NDArray[np.float64], rounds: int = 2) -> NDArray[np.float64]:
        """`seconds` of sums of so many bytes."""
        pieces = sizes / self.members
        ways = [latency + pieces / bandwidth for latency, bandwidth in self.links]
        return np.asarray(rounds * (self.members - 1) * np.maximum.reduce(ways))

    def receiving(self, num_bytes: float) -> float:
        """Seconds in which a member receives so many bytes, as much from each of the others."""
        return self._steps(num_bytes / (self.members - 1)) if num_bytes else 0.0

    def _steps(self, piece: float) -> float:
        """One message of `piece` bytes from each of the others, over the slowest link."""
        slowest = max(latency + piece / bandwidth for latency, bandwidth in self.links)
        return (self.members - 1) * slowest


def ring(cluster: Cluster, devices: Iterable[int]) -> RingLinks:
    """That of `devices` in their order: it has links of each level that joins several of them, or
    several of the groups below that they are in."""
    return _ring(cluster.levels, tuple(devices))


@lru_cache(KEPT)
def _ring(levels: tuple[Level, ...], devices: tuple[int, ...]) -> RingLinks:
    inside, joining = devices, list[Level]()
    for level in levels:
        groups = tuple(dict.fromkeys(member // level.count for member in inside))
        if len(groups) < len(inside):
            joining.append(level)
        inside = groups
    links = joining or levels[:1]
    return RingLinks(len(devices), frozenset((link.latency, link.bandwidth) for link in links))
