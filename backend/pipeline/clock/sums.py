"""Sums whose parts share links with messages: a part is sent when somebody asks for its links.

A rank decides of each part when it starts, once the part before has arrived. Who sends over a link
first lets those parts start that were to be decided before (`settle`), so that links go to who
comes first; what nobody disturbs is worked out at once when the sum ends.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate
from math import inf

import numpy as np

from backend.pipeline.kinds import Floats
from backend.pipeline.links import SumPart

Turn = tuple[float, int]
"""A time and a rank: of several ranks at once the lowest comes first."""
NumberedLinks = tuple[tuple[int, float], ...]
NumberedRing = tuple[Mapping[int, NumberedLinks], tuple[SumPart, ...]]
"""A `Ring` whose links are numbers."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Of a sum that `began` when its ranks came: when each part is made, how long it travels
    (`took` adds many up, `seconds` tells one), and when it arrives over links that are free
    (`alone`). Each behind number `idle` is made before the one in front of it arrives; the last one
    starts at `begin`."""

    began: float
    made: Floats
    took: Floats
    seconds: list[float]
    alone: list[float]
    idle: int
    begin: float

    @classmethod
    def of(cls, parts: Sequence[SumPart], began: float) -> "_Parts":
        made, seconds = [began - part.before for part in parts], [part.seconds for part in parts]
        alone, idle, begin, end = list[float](), 0, -inf, -inf
        for number, (ready, took) in enumerate(zip(made, seconds, strict=True)):
            if ready > end:
                idle = number
            begin = max(ready, end)
            end = begin + took
            alone.append(end)
        return cls(began, np.array(made), np.array(seconds), seconds, alone, idle, begin)

    @property
    def end(self) -> float:
        """When the sum ends if nobody disturbs it."""
        return max(self.alone[-1], self.began) if self.alone else self.began

    def arrivals(self, first: int, begin: float) -> list[float]:
        """When part number `first`, which starts at `begin`, and those behind it arrive over links
        that are free."""
        found, behind = [begin + self.seconds[first]], first + 1
        if behind <= self.idle:
            ends = self.took[first : self.idle + 1].copy()
            ends[0] += begin
            np.cumsum(ends, out=ends)
            catches_up = self.made[behind : self.idle + 1] >= ends[:-1]
            same = int(catches_up.argmax())
            if catches_up[same]:
                return [*ends[: same + 1].tolist(), *self.alone[behind + same :]]
            found, behind = ends.tolist(), self.idle + 1
        end = found.pop()
        found.extend(accumulate(self.seconds[behind:], initial=end))
        return found


@dataclass(slots=True)
class _Sum:
    """One rank's: `turn` is when part number `done` is decided, `end` when the one before it
    arrives; `row` says when part `base` and those behind it arrive if nobody disturbs them."""

    parts: _Parts
    links: NumberedLinks
    turn: float
    done: int = 0
    end: float = -inf
    base: int = 0
    row: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.row = self.parts.alone

    @property
    def is_through(self) -> bool:
        return self.done == len(self.parts.seconds)

    def go_on(self, until: Turn, rank: int, free: list[float]) -> None:
        """Decide of the next part, and of those whose turn comes before `until`."""
        parts, first = self.parts, self.done
        planned = max(float(parts.made[first]), self.end)
        begin = max(planned, *(free[link] for link, _ in self.links))
        if begin > planned:
            self.row, self.base = parts.arrivals(first, begin), first
        row, base = self.row, self.base
        within = bisect_right if rank < until[1] else bisect_left
        last = min(base + within(row, until[0], first - base), len(parts.seconds) - 1)
        if last > first:
            begin = max(float(parts.made[last]), row[last - 1 - base])
        for link, share in self.links:
            free[link] = begin + share * parts.seconds[last]
        self.done, self.end = last + 1, row[last - base]
        self.turn = max(parts.began, self.end)


class SharedSums:
    """The sums that are under way; `free[link]` is until when a link is taken, `waiting[group]`
    whose turns are to come, and when: ranks are of a group if their sums share links."""

    def __init__(self, rings: Sequence[NumberedRing | None], free: list[float]) -> None:
        self._free = free
        self._sums: dict[int, _Sum] = {}
        kinds = {id(ring): ring[0] for ring in rings if ring}
        self._group_of = _groups(kinds.values())
        self.waiting: list[list[Turn]] = [[] for _ in set(self._group_of.values())]
        self._newest: tuple[NumberedRing, _Parts] | None = None

    def groups(self, path: Sequence[int]) -> tuple[int, ...]:
        """The groups with sums over links of `path`."""
        found = (self._group_of[link] for link in path if link in self._group_of)
        return tuple(dict.fromkeys(found))

    def begin(self, rank: int, ring: NumberedRing, began: float) -> tuple[bool, float]:
        """Whether the rank uses no shared links, and the earliest time at which it is through."""
        parts, links = self._parts(ring, began), ring[0].get(rank, ())
        if not links or not parts.seconds:
            return True, parts.end
        self._sums[rank] = _Sum(parts, links, began)
        heappush(self.waiting[self._group_of[links[0][0]]], (began, rank))
        return False, parts.end

    def settle(self, group: int, until: Turn) -> None:
        """Decide of all parts of the group's sums whose turn comes before."""
        waiting = self.waiting[group]
        while waiting and waiting[0] < until:
            _, rank = heappop(waiting)
            one = self._sums[rank]
            one.go_on(min(until, waiting[0]) if waiting else until, rank, self._free)
            if not one.is_through:
                heappush(waiting, (one.turn, rank))

    def settle_all(self, until: Turn) -> None:
        """The same for every group."""
        for group, waiting in enumerate(self.waiting):
            if waiting:
                self.settle(group, until)

    def ends(self, rank: int, now: float) -> tuple[bool, float]:
        """Whether it is known when the sum of `rank` ends, and then, or the earliest time."""
        one = self._sums[rank]
        group, parts = self._group_of[one.links[0][0]], one.parts
        waiting = self.waiting[group]
        if not one.done and len(waiting) == 1 and self._are_free(one):
            waiting.clear()
            for link, share in one.links:
                self._free[link] = parts.begin + share * parts.seconds[-1]
            del self._sums[rank]
            return True, parts.end
        self.settle(group, (now, rank + 1))
        if one.is_through:
            del self._sums[rank]
            return True, max(one.end, parts.began)
        return False, max(one.row[-1], parts.began)

    def _are_free(self, one: _Sum) -> bool:
        return all(self._free[link] <= one.parts.made[0] for link, _ in one.links)

    def _parts(self, ring: NumberedRing, began: float) -> _Parts:
        """The same for all ranks of a sum."""
        if self._newest and self._newest[0] is ring and self._newest[1].began == began:
            return self._newest[1]
        found = _Parts.of(ring[1], began)
        self._newest = ring, found
        return found


def _groups(rings: Iterable[Mapping[int, NumberedLinks]]) -> dict[int, int]:
    """The group of each link of a ring: ranks that use one link, in one ring or another, are of
    one group, with all links that they use."""
    parent: dict[int, int] = {}

    def root(link: int) -> int:
        while parent.setdefault(link, link) != link:
            parent[link] = link = parent[parent[link]]
        return link

    for links in (own for ring in rings for own in ring.values()):
        for link, _ in links:
            parent[root(link)] = root(links[0][0])
    numbers: dict[int, int] = {}
    return {link: numbers.setdefault(root(link), len(numbers)) for link in parent}
