"""Whether there is a plan whose bottleneck is at most a given time, and which.

The stages are laid out from the output back, device by device: a state is an ideal that is
still to be placed and the number of devices at the end of the list that are taken or left
idle. For one limit each stage takes the fewest devices that reach it, because

- with as many layers to place, fewer devices taken is never worse where the cut in front is
  light enough for the slowest link: idle devices may be left anywhere;
- where it must stay within a machine, states of one machine are compared alone.
"""

from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from backend.planning.cost import ROUNDING, Floats, cut_seconds, fewest_members, stage_seconds
from backend.planning.pipedream.plan_space import Piece, PlanSpace

Ints = NDArray[np.int64]
FAR = 100
"""More levels than a cluster has: no way."""
START, ENTRY, STEP, PER_CUT, PER_BOUND = 100.0, 0.002, 40.0, 0.1, 0.04
"""Work of a search: once, per entry of its table, per stop and taken devices, per cut in front of
that, and per such cut and number of replicas that hold different memory."""
FEWEST_COPIED = 4.0
"""Devices of the smallest pipeline that is copied: two stages on two machines."""


def feasible(space: PlanSpace, limit: float) -> tuple[Piece, ...] | None:
    """The pieces of a plan with no stage or cut above `limit` seconds, input first; None where
    there is none.

    What some schedules hold depends on the devices in front of a stage too, which the search has
    not laid out yet. Where its plan does not fit for that reason, it is asked again for pipelines
    of so many devices in all. (Under vertical sync it also depends on the replicas of the input
    stage: plans with replicas may be missed there.)
    """
    every = space.cluster.num_devices
    pieces = LayingOut(space, limit, every).run()
    if pieces is None or space.relaxed or space.fits(pieces):
        return pieces
    for total in range(every, 0, -1):
        most = total if space.cluster.is_uniform else every
        pieces = LayingOut(space.with_devices(total), limit, most).run()
        if pieces and space.fits(pieces):
            return pieces
    return None


@dataclass
class LayingOut:
    """One search, as the module says.

    copies   on how many machines the pipeline stands alike
    behind   of each ideal the devices that are taken by what follows it elsewhere, -1 where
             nothing can; None where nothing does
    is_part  not the whole model is to be placed, so that no devices are kept for the rest
    """

    space: PlanSpace
    limit: float
    num_devices: int
    copies: int = 1
    behind: Ints | None = None
    is_part: bool = False
    table: NDArray[np.int8] = field(init=False)
    origin: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        space, cluster = self.space, self.space.cluster
        self.sizes = cluster.sizes
        self.top = len(cluster.levels)
        self.reach = np.zeros(len(space.ideals), dtype=np.int64)
        for bandwidth in cluster.slowest:
            seconds = cut_seconds(space.ideals.exchanged_bytes, bandwidth)
            self.reach += seconds <= self.limit
        self.reach[[0, -1]] = self.top
        self.open = np.flatnonzero(self.reach)
        least = space.compute / max(self.limit, 1e-300)
        self.paces = [device.speed for device in cluster.each][::-1]
        self.uneven = not cluster.is_uniform
        if self.uneven:
            self.needed = self._needed(least)
        else:
            self.needed = np.ceil(least * (1 - ROUNDING)).clip(0, 2**31).astype(np.int64)
        shape = (len(space.ideals), self.num_devices + 1)
        self.table = np.full(shape, FAR, dtype=np.int8)
        self.origin = np.zeros(shape, dtype=np.int64)
        self.steps: list[tuple[int, int, int]] = []
        self.others = np.zeros(shape, dtype=np.int64)

    def run(self) -> tuple[Piece, ...] | None:
        last = len(self.reach) - 1
        if self.is_part:
            self.needed[:] = 0
        if self.behind is not None:
            ready = np.flatnonzero(self.behind >= 0)
            self.table[ready, 0], self.others[ready, 0] = 0, self.behind[ready]
            self.reach[ready] = self.top
        elif self.needed[last] > self.num_devices:
            return None
        else:
            self.table[last, 0] = 0
        self.space.work.spend(START + ENTRY * self.table.size)
        for stop in self.open[::-1].tolist():
            if stop == 0:
                break
            taken = self._worth(stop)
            if taken:
                self._extend(stop, taken)
        ends = np.flatnonzero(self.table[0] < FAR)
        return self.trace(0, int(ends[0])) if len(ends) else None

    def _worth(self, stop: int) -> list[int]:
        """The numbers of taken devices from which to go on, without those that are no better
        than another."""
        reach = int(self.reach[stop])
        taken: list[int] = np.flatnonzero(self.table[stop] <= reach).tolist()
        if reach == self.top:
            return taken[:1]
        size = self.sizes[reach]
        if self.uneven:
            return [count for count in taken if count % size]
        kept: list[int] = []
        best = size
        for count in taken:
            offset = count % size
            if offset and offset < best:
                kept.append(count)
                best = offset
        return kept

    def _extend(self, stop: int, taken: list[int]) -> None:
        firsts = self._firsts(stop, taken[0])
        if not len(firsts):
            return
        self.space.work.spend(STEP + PER_CUT * len(firsts))
        weights = self.space.ideals.weights(firsts, stop)
        fewest = weights if self.uneven else self._fewest(firsts, stop, taken[0], weights)
        for count in taken:
            if self.space.memory and count != taken[0] and not (self.uneven or self.space.relaxed):
                fewest = self._fewest(firsts, stop, count, weights)
            self.space.work.spend(STEP + PER_CUT * len(firsts))
            if self.uneven:
                self._place_uneven(firsts, stop, count, weights)
                continue
            for start in self._starts(count):
                if count == 0 or self._climb(count - 1, start) <= self.reach[stop]:
                    self._place(firsts, stop, count, start, fewest)

    def _firsts(self, stop: int, taken: int) -> Ints:
        """Where the stage in front of `stop` may begin: with enough devices left for the rest."""
        left = self.num_devices - taken
        power = sum(self.paces[taken:]) if self.uneven else left
        firsts = self.open[: np.searchsorted(self.open, stop)]
        within = self.space.between(firsts, stop) <= power * self.limit * (1 + ROUNDING)
        within &= self.needed[firsts] < left
        firsts = firsts[within]
        return np.asarray(firsts[self.space.ideals.nested_in(firsts, stop)])

    def _fewest(self, firsts: Ints, stop: int, taken: int, weights: Floats) -> Floats:
        """Per level and stage: the fewest devices that reach the limit on the level's links."""
        space = self.space
        compute = space.between(firsts, stop)
        least: Floats | float = 1.0
        if space.memory is not None:
            used = self.copies * taken + int(self.others[stop, taken])
            bounds = space.bounds(self._least_after(stop) if space.relaxed else used, self.copies)
            space.work.spend(STEP + PER_BOUND * len(firsts) * len(bounds.replicas))
            least = space.memory.fewest_replicas(space.ideals, firsts, stop, bounds)
            least = np.ceil(least / self.copies)
        machines, links = self.sizes[:-1], np.array(space.cluster.slowest)[:, None]
        at_least = [self._copied(least, machine, firsts, stop) for machine in machines]
        rows = np.array(at_least).reshape(len(machines), -1)
        found = fewest_members(compute, weights, links, self.limit, space.overlap, rows)
        return np.asarray(found)

    def _copied(
        self, least: Floats | float, machine: int, firsts: Ints, stop: int
    ) -> Floats | float:
        """Where copied pipelines are asked for too: `FEWEST_COPIED` if the layers fit on the
        devices of one `machine`, which must be one of several."""
        memory = self.space.memory
        if memory is None or not self.space.relaxed or machine == 1:
            return least
        shared = memory.shared_fits(self.space.ideals, firsts, stop, machine)
        return np.where(shared, np.minimum(least, FEWEST_COPIED), least)

    def _least_after(self, stop: int) -> int:
        """Devices without which the layers behind `stop` do not keep within the limit."""
        behind = self.space.compute[-1] - self.space.compute_most[stop]
        return int(np.ceil(behind / max(self.limit, 1e-300) * (1 - ROUNDING)))

    def _starts(self, taken: int) -> list[int]:
        """The next device, and the first one of each next machine."""
        rounded = (-(-taken // size) * size for size in self.sizes[:-1])
        return sorted({start for start in rounded if start < self.num_devices})

    def _climb(self, a: int, b: int) -> int:
        return next(n for n, size in enumerate(self.sizes) if a // size == b // size)

    def _place(self, firsts: Ints, stop: int, taken: int, start: int, fewest: Floats) -> None:
        """Plain stages from `start` on, each within the smallest machine that it fits in."""
        rooms = [size - start % size for size in self.sizes[1:]]
        count = np.where(fewest[0] == 1, 1.0, np.inf)
        level = np.where(fewest[0] == 1, 0, FAR)
        inner = 0
        for number, (ring, room) in enumerate(zip(fewest, rooms, strict=True), start=1):
            spans = np.maximum(ring, inner + 1 if self.space.relaxed else 0)
            fits = (level == FAR) & (spans <= min(room, self.num_devices - start))
            count = np.where(fits, spans, count)
            inner = room
            level = np.where(fits, number, level)
        self._note(firsts, stop, taken, start, start + count, level)

    def _needed(self, least: Floats) -> Ints:
        """The fewest devices, from the input's end of the list, with so much speed together."""
        power = np.cumsum(self.paces[::-1])
        short = np.searchsorted(power * (1 + ROUNDING), least) + 1
        return np.where(least > 0, short, 0).astype(np.int64)

    def _place_uneven(self, firsts: Ints, stop: int, taken: int, weights: Floats) -> None:
        """Stages on any run of devices; the slowest of a run sets its pace."""
        space, cluster = self.space, self.space.cluster
        compute = space.between(firsts, stop)
        least: Floats | float = 1.0
        for start in range(taken, self.num_devices):
            if stop < len(self.reach) - 1 and self._climb(taken - 1, start) > self.reach[stop]:
                continue
            if start > taken and not self._worth_waiting(start):
                continue
            for end in range(start + 1, self.num_devices + 1):
                count, level = end - start, self._climb(start, end - 1)
                pace = min(self.paces[start:end])
                space.work.spend(STEP + PER_CUT * len(firsts))
                if space.memory is not None:
                    least = self._least_uneven(firsts, stop, taken, start, end)
                seconds = stage_seconds(
                    compute / pace,
                    weights,
                    count,
                    cluster.slowest[max(level - 1, 0)],
                    space.overlap,
                )
                fits = (seconds <= self.limit) & (least <= count)
                if fits.any():
                    levels = np.where(fits, level, FAR)
                    self._note(firsts, stop, taken, start, np.full(len(firsts), float(end)), levels)

    def _worth_waiting(self, start: int) -> bool:
        """Whether a stage may gain by beginning here and not one device earlier."""
        each = self.space.cluster.each[::-1]
        here, before = each[start], each[start - 1]
        larger = (here.memory or inf) > (before.memory or inf)
        edge = any(start % size == 0 for size in self.sizes[1:-1])
        return here.speed > before.speed or larger or edge

    def _least_uneven(self, firsts: Ints, stop: int, taken: int, start: int, end: int) -> Floats:
        """The fewest replicas that fit, on the smallest of the devices start..end-1."""
        each = self.space.cluster.each[::-1][start:end]
        rule = self.space.memory_on(*(device.memory for device in each))
        return rule.fewest_replicas(self.space.ideals, firsts, stop, self.space.bounds(taken))

    def _note(
        self,
        firsts: Ints,
        stop: int,
        taken: int,
        start: int,
        ends: Floats,
        level: NDArray[np.int64],
    ) -> None:
        """Keep the ways that leave enough devices and whose stage climbs the fewest levels."""
        allowed = FAR if stop == len(self.reach) - 1 else int(self.reach[stop])
        fits = (level <= min(allowed, FAR - 1)) & (ends + self.needed[firsts] <= self.num_devices)
        if not fits.any():
            return
        at = firsts[fits] * (self.num_devices + 1) + ends[fits].astype(np.int64)
        climbed = level[fits].astype(np.int8)
        table, origin = self.table.reshape(-1), self.origin.reshape(-1)
        better = climbed < table[at]
        if better.any():
            self.steps.append((stop, taken, start))
            table[at[better]] = climbed[better]
            origin[at[better]] = len(self.steps) - 1
            self.others.reshape(-1)[at[better]] = self.others[stop, taken]

    def trace(self, first: int, end: int) -> tuple[Piece, ...]:
        """The pieces behind ideal `first` with `end` devices taken at the end of the list."""
        pieces: list[Piece] = []
        while end:
            stop, taken, start = self.steps[int(self.origin[first, end])]
            pieces.append(Piece(first, stop, start, end))
            first, end = stop, taken
        return tuple(pieces)
