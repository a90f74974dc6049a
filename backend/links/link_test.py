"""How fast the links between registered devices are: asked for, measured, kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from statistics import median

from backend.cluster.cluster import Cluster, Device
from backend.cluster.presets import LOOPBACK_BANDWIDTH, LOOPBACK_LATENCY
from backend.cluster.registered import ETHERNET, ETHERNET_LATENCY, from_nodes


class LinkState(StrEnum):
    """Of a test: it waits for its nodes, they measure, it is over."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        return self in (LinkState.DONE, LinkState.FAILED)


@dataclass(frozen=True, slots=True)
class Link:
    """Between the devices `one` and `other`, numbered through node by node; `bandwidth` in
    bytes/s one way, `latency` in seconds from the one to the other."""

    one: int
    other: int
    bandwidth: float
    latency: float


@dataclass(frozen=True, slots=True)
class LinkTestMember:
    """A node that takes part, with the devices that it reported; or a machine of a `pool`'s job,
    under a name for people."""

    node: str
    devices: tuple[Device, ...]
    pool: str = ""


@dataclass(frozen=True, slots=True)
class LinkTest:
    """`rendezvous`: where the first node's process listens ("host:port"); "" = not yet known."""

    id: int
    state: LinkState
    members: tuple[LinkTestMember, ...]
    created_at: datetime
    rendezvous: str = ""
    links: tuple[Link, ...] = ()
    error: str = ""

    @property
    def pool(self) -> str:
        """Whose job measures; "" where agents of nodes do."""
        return self.members[0].pool

    @property
    def num_devices(self) -> int:
        return sum(len(member.devices) for member in self.members)

    def member_of(self, device: int) -> int:
        """The number of the node that a device belongs to."""
        homes = [n for n, member in enumerate(self.members) for _ in member.devices]
        return homes[device]

    def first_device(self, node: str) -> int:
        """The number of a node's first device."""
        names = [member.node for member in self.members]
        return sum(len(member.devices) for member in self.members[: names.index(node)])

    def between(self, one: int, other: int) -> Link | None:
        """The middle of all links between two nodes (or within one), by their numbers."""
        wanted = {one, other}
        found = [
            link
            for link in self.links
            if {self.member_of(link.one), self.member_of(link.other)} == wanted
        ]
        return _middle(found) if found else None

    def cluster(self) -> Cluster:
        """The devices on links as slow as the slowest pair of nodes; what was not measured,
        because a node has one device or there is one node, is as `from_nodes` assumes."""
        count = range(len(self.members))
        inside = [self.between(n, n) for n in count]
        across = [self.between(a, b) for a in count for b in count if a < b]
        return from_nodes(
            [member.devices for member in self.members],
            _slowest(inside) or (LOOPBACK_BANDWIDTH, LOOPBACK_LATENCY),
            _slowest(across) or (ETHERNET, ETHERNET_LATENCY),
        )


def _middle(links: Sequence[Link]) -> Link:
    first = links[0]
    bandwidth = median(link.bandwidth for link in links)
    return Link(first.one, first.other, bandwidth, median(link.latency for link in links))


def _slowest(links: Sequence[Link | None]) -> tuple[float, float] | None:
    known = [link for link in links if link is not None]
    if not known:
        return None
    return min(link.bandwidth for link in known), max(link.latency for link in known)
