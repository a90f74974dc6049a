"""How the replicas of a stage sum their gradients: a ring over links, in buckets that travel while
the backward still goes on."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.pipeline.links import SumPart
from backend.profiles.profile import Layer

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
    part: Sequence[Layer], backward: float, over: RingLinks, bucket_bytes: int
) -> Iterator[SumPart]:
    """The buckets of a stage's layers, as a backward of so many seconds fills them from the last
    layer to the first; a layer's gradients are there when its own backward is over. The last
    bucket, with which the loss travels, waits for the end."""
    whole = sum(layer.backward for layer in part)
    left, held, full = whole, 0, list[tuple[float, int]]()
    for layer in reversed(part):
        left -= layer.backward
        held += layer.parameter_bytes
        if held >= bucket_bytes:
            full.append((max(0.0, left), held))
            held = 0
    if held or not full:
        full.append((0.0, held))
    *others, (_, last) = full
    for rest, num_bytes in others:
        yield SumPart(backward * rest / whole if whole else 0.0, over.seconds(num_bytes))
    yield SumPart(0.0, over.seconds(last))
