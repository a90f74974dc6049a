"""How the replicas of a stage sum their gradients: a ring over links, in buckets that travel while
the backward still goes on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.pipeline.links import SumPart
from backend.profiles.layer import LayerSums

BUCKET_BYTES = 4 * 2**20
"""Of a bucket of gradients as ranks send it. Long enough to use the link, short enough to start
early (torch's own default is 25 MiB with a first bucket of 1; on gloo 4 MiB were as fast and
started earlier)."""


@dataclass(frozen=True, slots=True)
class RingLinks:
    """The different links of a ring, each as (latency, bandwidth), between so many `members`."""

    members: int
    links: frozenset[tuple[float, float]]

    def seconds(self, num_bytes: float, rounds: int = 2) -> float:
        """A sum of `num_bytes`: 2 (r-1) steps, each of the r-th part over its slowest link
        (Patarasuk and Yuan, JPDC 2009); links are full duplex. Its second half alone, one round,
        gathers what each has of them."""
        piece = num_bytes / self.members
        slowest = max(latency + piece / bandwidth for latency, bandwidth in self.links)
        return rounds * (self.members - 1) * slowest


def ring(cluster: Cluster, devices: Iterable[int]) -> RingLinks:
    """That of `devices` in their order."""
    members = sorted(devices)
    links = (cluster.link(a, b) for a, b in zip(members, (*members[1:], members[0]), strict=True))
    return RingLinks(len(members), frozenset((link.latency, link.bandwidth) for link in links))


def pieces(
    part: LayerSums, backward: float, over: RingLinks, bucket_bytes: int
) -> Iterator[SumPart]:
    """The buckets of a stage's layers, as a backward of so many seconds fills them; with the last
    one travels the loss."""
    for left, num_bytes in part.buckets(bucket_bytes):
        before = backward * left / part.backward if part.backward else 0.0
        yield SumPart(before, over.seconds(num_bytes))
