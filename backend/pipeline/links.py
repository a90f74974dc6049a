"""Which transfers wait for each other: the seam between ranks and the links under them."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, Protocol

from backend.pipeline.actions import Collective

Path = tuple[Hashable, ...]
"""The links that a transfer keeps busy, all of them from its start to its end."""


class SumPart(NamedTuple):
    """A part of a sum that travels by itself for so many `seconds`, from `before` seconds before
    its ranks come to the sum: it is made by then."""

    before: float
    seconds: float


LinkShares = tuple[tuple[Hashable, float], ...]
"""Links, each with the share of a sum's seconds in which it is busy."""


@dataclass(frozen=True, slots=True)
class Ring:
    """What a sum keeps busy: of every rank of the group, while it sends each part to the next one,
    these `links`. A rank is through when its own parts are: who shares a link with many messages
    is late, and the others meet it at the next sum."""

    links: Mapping[int, LinkShares]
    pieces: tuple[SumPart, ...]


def exposed(pieces: Iterable[SumPart]) -> float:
    """Seconds for which ranks that have come to a sum wait for its pieces."""
    end = -inf
    for before, seconds in pieces:
        end = (end if end > -before else -before) + seconds
    return max(0.0, end)


class Links(Protocol):
    """Where the messages from one rank to another travel. Links are named by any value."""

    def path(self, source: int, to: int) -> Path:
        """The links between two ranks; transfers that share one go first come, first served."""

    def latency(self, source: int, to: int) -> float:
        """Seconds at the end of a transfer in which its links are free for the next one."""

    def ring(self, action: Collective) -> Ring | None:
        """The links that a collective shares with transfers; None where it shares none."""


@dataclass(frozen=True, slots=True)
class OwnLinks:
    """Every pair of ranks has a link of its own, each way."""

    def path(self, source: int, to: int) -> Path:
        return ((source, to),)

    def latency(self, source: int, to: int) -> float:
        return 0.0

    def ring(self, action: Collective) -> Ring | None:
        return None


@dataclass(frozen=True, slots=True)
class ServerLinks:
    """The ranks of a server share one full-duplex link to the other servers; inside a server
    every pair has its own, and sums use none. `servers[r]` is rank r's; `between` is the latency
    between servers in seconds."""

    servers: tuple[int, ...]
    between: float = 0.0

    def path(self, source: int, to: int) -> Path:
        here, there = self.servers[source], self.servers[to]
        if here == there:
            return ((source, to),)
        return (("out of server", here), ("into server", there))

    def latency(self, source: int, to: int) -> float:
        return self.between if self.servers[source] != self.servers[to] else 0.0

    def ring(self, action: Collective) -> Ring | None:
        return None
