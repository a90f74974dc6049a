"""The links of an emulated cluster: when each is free again, in a file that all ranks share.

    inside the innermost level   every pair of devices has a link of its own, each way
    between members of a level   each member has one link out and one in, for all its devices

As `backend.pipeline.links.ServerLinks` has it. A link takes one transfer after the other.
"""

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backend.cluster.cluster import Cluster
from backend.cluster.ring import ring

NUMBER = struct.Struct("d")
KEPT = 8
"""Collectives that a rank may be ahead of the slowest of its group; one would do, since none ends
before all ranks have joined it."""


@dataclass(frozen=True, slots=True)
class LinkTerms:
    """`devices[r]` is rank r's; `scale`: seconds here per second there; `share`: how much of a
    tensor's bytes is really sent."""

    cluster: Cluster
    devices: tuple[int, ...]
    scale: float
    share: float


class EmulatedLinks:
    """A table of times, when each link is free again and when each rank joined its collectives,
    in seconds of this machine's monotonic clock. All ranks open the same `file`."""

    def __init__(self, file: Path, rank: int, terms: LinkTerms) -> None:
        self.rank, self._terms = rank, terms
        size = len(terms.devices)
        self._num_pairs = terms.cluster.num_devices**2
        members = [terms.cluster.num_devices // each for each in terms.cluster.sizes[1:-1]]
        self._above = [self._num_pairs + 2 * sum(members[:n]) for n in range(len(members) + 1)]
        self._arrivals = self._above[-1]
        self._joined = 0
        length = NUMBER.size * (self._arrivals + KEPT * size)
        self._handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self._handle, length)
        self._table = mmap.mmap(self._handle, length)

    def send(self, to: int, num_bytes: int) -> float:
        """Book the links to rank `to` for a message of which `num_bytes` are really sent; the
        time of its arrival."""
        here, there = self._terms.devices[self.rank], self._terms.devices[to]
        link = self._terms.cluster.link(here, there)
        seconds = self._terms.scale * num_bytes / self._terms.share / link.bandwidth
        start = self._take(self._path(here, there), seconds)
        return start + seconds + self._terms.scale * link.latency

    def join(self) -> int:
        """This rank joins its next collective; the number of it."""
        number, self._joined = self._joined, self._joined + 1
        self._write(self._arrival(self.rank, number), time.monotonic())
        return number

    def collective(
        self, number: int, ranks: Sequence[int], num_bytes: int, rounds: int = 2
    ) -> float:
        """When the collective `number` over `ranks`, all of whom have joined it, ends for this
        rank: so many rounds of a ring in device order that begins when the last one joined."""
        terms = self._terms
        devices = sorted(terms.devices[rank] for rank in ranks)
        whole = num_bytes / terms.share
        seconds = terms.scale * ring(terms.cluster, devices).seconds(whole, rounds)
        here = terms.devices[self.rank]
        there = devices[(devices.index(here) + 1) % len(devices)]
        link = terms.cluster.link(here, there)
        sent = rounds * (len(devices) - 1) / len(devices) * whole
        joined = max(self._read(self._arrival(rank, number)) for rank in ranks)
        start = self._take(self._path(here, there), terms.scale * sent / link.bandwidth, joined)
        return start + seconds

    def _path(self, here: int, there: int) -> tuple[int, ...]:
        """The places in the table of the links between two devices."""
        level = self._terms.cluster.span((here, there)) - 1
        if level == 0:
            return (here * self._terms.cluster.num_devices + there,)
        first, size = self._above[level - 1], self._terms.cluster.sizes[level]
        return first + 2 * (here // size), first + 2 * (there // size) + 1

    def _take(self, path: tuple[int, ...], seconds: float, earliest: float | None = None) -> float:
        """Book all links of the path as soon as all are free; the start."""
        with self._alone():
            ready = time.monotonic() if earliest is None else earliest
            start = max([ready, *(self._read(place) for place in path)])
            for place in path:
                self._write(place, start + seconds)
        return start

    def _arrival(self, rank: int, number: int) -> int:
        return self._arrivals + KEPT * rank + number % KEPT

    def _read(self, place: int) -> float:
        return float(NUMBER.unpack_from(self._table, place * NUMBER.size)[0])

    def _write(self, place: int, value: float) -> None:
        NUMBER.pack_into(self._table, place * NUMBER.size, value)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        fcntl.lockf(self._handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._handle, fcntl.LOCK_UN)
