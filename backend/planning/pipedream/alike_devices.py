"""Sets of devices, but for those that may change places: how many of each group a set has.

A group is of one machine (a member of the innermost level), and of one speed and memory. Members of
a level with the same groups may change places too: `canonical` puts them in order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, product
from math import comb, factorial, gcd, inf, prod
from operator import sub
from typing import Any

from backend.cluster.cluster import Cluster

Counts = tuple[int, ...]
"""Of each group so many devices."""


@dataclass(frozen=True, slots=True)
class _Member:
    """Of a level: its groups, and the runs of alike members in it, inner ones first, each as its
    first group, the groups of a member, and members."""

    groups: tuple[tuple[int, ...], ...]
    runs: tuple[tuple[int, int, int], ...]
    likeness: tuple[Any, ...]


class AlikeDevices:
    """Those of `cluster`; `groups` are the devices of each group."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        whole = _member(cluster, len(cluster.levels), 0)
        self.groups, self.runs = whole.groups, whole.runs
        self.every: Counts = tuple(map(len, self.groups))
        firsts = [cluster.at(group[0]) for group in self.groups]
        self._speeds = [device.speed for device in firsts]
        self._memories = [device.memory or inf for device in firsts]

    def num_choices(self) -> int:
        """About how many ways there are to choose a set behind, one in front of a cut (where there
        are several levels), and one of the rest."""
        labels = 3 if len(self.cluster.levels) > 1 else 2
        every = prod(comb(size + labels, labels) for size in self.every)
        return every // prod(factorial(count) for _, _, count in self.runs)

    def canonical(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """What each group has, in an order that is the same for alike members that change
        places."""
        found = list(values)
        for start, width, count in self.runs:
            stop = start + width * count
            members = sorted(found[at : at + width] for at in range(start, stop, width))
            found[start:stop] = chain.from_iterable(members)
        return tuple(found)

    def chosen(self, free: Counts, *labels: Counts) -> Iterator[Counts]:
        """Every set of `free` devices with one at least, once of those that are alike but for
        members that change places with their `labels`."""
        seen = set()
        for counts in product(*(range(count + 1) for count in free)):
            key = self.canonical(list(zip(counts, *labels, strict=True))) if self.runs else counts
            if any(counts) and key not in seen:
                seen.add(key)
                yield counts

    def without(self, counts: Counts) -> Counts:
        """The devices that are not in a set."""
        return tuple(map(sub, self.every, counts))

    def speed(self, counts: Counts) -> float:
        """Of all devices of a set together; `pace` of the slowest, `memory` the least."""
        return sum(count * speed for count, speed in zip(counts, self._speeds, strict=True))

    def pace(self, counts: Counts) -> float:
        return min(speed for count, speed in zip(counts, self._speeds, strict=True) if count)

    def memory(self, counts: Counts) -> float:
        return min(size for count, size in zip(counts, self._memories, strict=True) if count)

    def span(self, counts: Counts) -> int:
        """Levels that the links between the devices of a set climb; 0 for one device."""
        if sum(counts) == 1:
            return 0
        there = [group[0] for group, count in zip(self.groups, counts, strict=True) if count]
        return max(1, self.cluster.span(there))

    def cut_rate(self, before: Counts, after: Counts) -> float:
        """The least seconds per byte of a cut between two sets, in any order of their replicas: at
        each level microbatches may stay within its members where those have so many devices of
        both as replicas that hand over to each other."""
        common = gcd(sum(before), sum(after))
        found = inf
        for level, bandwidth in enumerate(self.cluster.slowest, start=1):
            there, here = self._within(before, level), self._within(after, level)
            shares = {home: n * common / sum(before) for home, n in there.items()}
            same = all(shares.get(home) == n * common / sum(after) for home, n in here.items())
            if same and len(there) == len(here) and all(s == int(s) for s in shares.values()):
                found = min(found, max(shares.values()) / common / bandwidth)
        return found

    def _within(self, counts: Counts, level: int) -> dict[int, int]:
        """Devices of a set in each member of a level."""
        size, found = self.cluster.sizes[level], dict[int, int]()
        for group, count in zip(self.groups, counts, strict=True):
            if count:
                found[group[0] // size] = found.get(group[0] // size, 0) + count
        return found


def _member(cluster: Cluster, level: int, start: int) -> _Member:
    if level == 1:
        return _machine(cluster, range(start, start + cluster.sizes[1]))
    size = cluster.sizes[level - 1]
    members = [
        _member(cluster, level - 1, first)
        for first in range(start, start + cluster.sizes[level], size)
    ]
    members.sort(key=lambda member: member.likeness)
    inner, outer, at = [], [], 0
    for _, alike in groupby(members, key=lambda member: member.likeness):
        same = list(alike)
        width = len(same[0].groups)
        outer.append((at, width, len(same)))
        for member in same:
            inner += [(at + first, wide, count) for first, wide, count in member.runs]
            at += width
    groups = tuple(group for member in members for group in member.groups)
    runs = (*inner, *(run for run in outer if run[2] > 1))
    return _Member(groups, runs, tuple(member.likeness for member in members))


def _machine(cluster: Cluster, devices: range) -> _Member:
    def kind(number: int) -> tuple[float, float]:
        device = cluster.at(number)
        return device.speed, device.memory or inf

    alike = [(key, tuple(each)) for key, each in groupby(sorted(devices, key=kind), key=kind)]
    groups = tuple(each for _, each in alike)
    return _Member(groups, (), tuple((key, len(each)) for key, each in alike))
