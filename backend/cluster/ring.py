"""A ring over the links of some devices: how long what they send each other takes."""

from collections.abc import Iterable
from dataclasses import dataclass

from backend.cluster.cluster import Cluster


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
    inside = list(devices)
    members, joining = len(inside), []
    for level in cluster.levels:
        groups = list(dict.fromkeys(member // level.count for member in inside))
        if len(groups) < len(inside):
            joining.append(level)
        inside = groups
    links = joining or cluster.levels[:1]
    return RingLinks(members, frozenset((link.latency, link.bandwidth) for link in links))
