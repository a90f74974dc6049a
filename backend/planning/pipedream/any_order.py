"""Whether any plan keeps within a time, wherever its stages stand, and which stages it would have.

`feasibility` lays stages out in the order of the devices. Here a stage may have any devices. Then
two things bind on several levels:

- devices in all, of which memory needs the more the more there are behind a stage;
- cuts that are too heavy for the links between the machines. Replicas hand their microbatches to
  those of the next stage in turn, so that such a cut stays within machines only where the stages
  are `copies` of one pipeline, as many as the greatest common divisor of their replicas, and each
  copy has its devices in one machine. Such stages are joined.

Everything else is taken at its best: each ring has the fastest links that so many devices can have,
machines are parted without a rest, and of a cut that is shared each machine carries as little as
can be. So a time within which there is nothing here is a lower bound of every plan. What there is
may be a plan (`packing`).

With as many layers to place, fewer devices behind are never worse: per cut that is not joined the
fewest are kept, and per joined cut the fewest for each size of what a machine holds of a copy.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.planning.cost import ROUNDING, Floats, members_needed, no_fewer
from backend.planning.pipedream.counted import (
    LEAST_JOINED,
    CountedStage,
    FewestBehind,
    Joined,
    numbers_of_copies,
)
from backend.planning.pipedream.feasibility import PER_BOUND, PER_CUT, START, STEP
from backend.planning.pipedream.plan_space import PlanSpace
from backend.planning.replica_bounds import Bounds

Ints = NDArray[np.int64]
SOURCES, BEHIND = 64, 16
"""Of what is behind a stop so much is looked at together, and where memory is asked for."""
Source = tuple[int, int, int]
"""The place in `AnyOrder.copies`, -1 where nothing is joined, devices of a copy and in all."""


@dataclass
class AnyOrder:
    """One question. A machine is a member of the level above `tier`.

    is_doubled   of copies two are in one machine. Others visit their machines in turn, for which
                 the cost model charges the ring of all their weights (`bottleneck`). So without a
                 memory limit one stage on their devices is as fast, and nothing is left out
    """

    space: PlanSpace
    limit: float
    tier: int = 1
    is_doubled: bool = False

    def __post_init__(self) -> None:
        cluster, ideals = self.space.cluster, self.space.ideals
        self.limit *= 1 + ROUNDING
        self.sizes, self.devices = cluster.sizes, cluster.num_devices
        self.block = self.sizes[self.tier]
        self.machines = self.devices // self.block
        seconds = [ideals.exchanged_bytes / bandwidth for bandwidth in cluster.slowest]
        members = [self.devices // size for size in self.sizes[1:]]
        crossing = [s / m for s, m in zip(seconds, members, strict=True)][self.tier :]
        self.crosses = np.min(crossing, axis=0) <= self.limit
        self.crosses[[0, -1]] = True
        needs = np.ceil(np.array(seconds[: self.tier]) / max(self.limit, 1e-300) * (1 - ROUNDING))
        most = np.array(members[: self.tier])[:, None]
        self.sharers = np.where(needs <= most, np.maximum(needs, 1.0), inf).min(axis=0)
        self.open = np.flatnonzero(self.crosses | np.isfinite(self.sharers))
        least = self.space.compute / max(self.limit, 1e-300)
        self.needed = np.ceil(least * (1 - ROUNDING)).clip(0, 2**31)
        self.steps: list[tuple[int, int, int, int]] = []
        self.copies = numbers_of_copies(self.machines, self.block)
        self.widths = [self._widest(least) for least, _ in self.copies]
        self.free = FewestBehind(np.full((len(ideals), 1), inf))
        columns = sum(wide + 1 for wide in self.widths)
        self.joined = FewestBehind(np.full((len(ideals), columns), inf))
        self.place_of = np.repeat(np.arange(len(self.widths)), [wide + 1 for wide in self.widths])

    def run(self) -> tuple[Joined, ...] | None:
        """Stages within the limit, those near the input first; None where there are none. Raises
        `WorkSpent`."""
        self.space.work.spend(START + STEP * len(self.copies))
        self.free.fewest[-1] = 0
        for stop in self.open[::-1].tolist():
            sources = self._sources(stop)
            if sources and stop:
                self._extend(stop, sources)
        return self._trace() if self.free.fewest[0, 0] <= self.devices else None

    def _widest(self, copies: int) -> int:
        """Devices of a machine that each of so many copies may have."""
        if copies == 1:
            return self.block
        most = self.block // 2 if self.is_doubled or not self.space.memory else self.block
        widths = range(1, most + 1)
        return max(wide for wide in widths if self.machines * (self.block // wide) >= copies)

    def _sources(self, stop: int) -> list[Source]:
        """What is behind `stop`: the place in `copies` (-1 = not joined), devices of a copy and
        in all; without those that are no better than another."""
        found = []
        if self.free.fewest[stop, 0] < self.devices:
            found.append((-1, 0, int(self.free.fewest[stop, 0])))
        reached = self.joined.fewest[stop]
        columns = np.flatnonzero(reached < inf)
        places, offsets = self.place_of[columns], self._columns[:, 3]
        best, before = inf, -1
        for place, wide, behind in zip(
            places.tolist(),
            (columns - offsets[places]).astype(np.int64).tolist(),
            reached[columns].tolist(),
            strict=True,
        ):
            best, before = (best if place == before else inf), place
            if behind < best:
                best = behind
                found.append((place, wide, int(behind)))
        return found

    def _extend(self, stop: int, sources: list[Source]) -> None:
        space, least = self.space, min(behind for _, _, behind in sources)
        firsts = self.open[: np.searchsorted(self.open, stop)]
        space.work.spend(STEP + PER_CUT * len(firsts))
        within = space.between(firsts, stop) <= (self.devices - least) * self.limit
        firsts = firsts[within & (self.needed[firsts] + least < self.devices + 1)]
        firsts = firsts[space.ideals.nested_in(firsts, stop)]
        if not len(firsts):
            return
        behinds = {behind: row for row, behind in enumerate(dict.fromkeys(s[2] for s in sources))}
        bounds = [space.bounds(behind) for behind in behinds] if space.memory else []
        self._count(sources, behinds, bounds, len(firsts))
        fewest = self._fewest(firsts, stop, len(behinds), bounds)
        rows = [behinds[behind] for _, _, behind in sources]
        step = len(self.steps)
        self.steps += [(stop, *source) for source in sources]
        if sources[0][0] < 0:
            inside, outside = fewest[:, rows.pop(0)]
            behind = sources.pop(0)[2]
            self._alone(firsts, np.fmin(inside, outside), behind, step)
            self._begin(firsts, behind, (inside, outside), step)
            step += 1
        for at in range(0, len(sources), SOURCES):
            some = slice(at, at + SOURCES)
            self._join(firsts, np.array(sources[some]), fewest[:, rows[some]], step + at)

    def _count(
        self,
        sources: list[Source],
        behinds: Iterable[int],
        bounds: list[Bounds],
        cuts: int,
    ) -> None:
        """Count the work for stages from `cuts` of them to what is behind."""
        held = [PER_BOUND * cuts * len(each.replicas) for each in bounds]
        first = dict(zip(behinds, held, strict=True)) if bounds else dict.fromkeys(behinds, 0.0)
        amounts = []
        for place, _, behind in sources:
            if behind in first:
                amounts += [first.pop(behind), PER_CUT * cuts]
            amounts.append(STEP / 2 * (1 if place >= 0 else len(self.copies)))
        self.space.work.spend_each(amounts)

    def _needed(self, firsts: Ints, stop: int) -> list[tuple[Any, Any]]:
        """The `members_needed` at each level."""
        compute, weights = self.space.between(firsts, stop), self.space.ideals.weights(firsts, stop)
        return [
            members_needed(compute, weights, bandwidth, self.limit, self.space.overlap)
            for bandwidth in self.space.cluster.slowest
        ]

    def _fewest(self, firsts: Ints, stop: int, behinds: int, bounds: list[Bounds]) -> Floats:
        """[0 or 1, number of what is behind, first]: the fewest replicas within one machine, and
        over several; infinite where none do."""
        space = self.space
        least: Floats | float = 1.0
        if space.memory is not None:
            parts = (Bounds.of(bounds[at : at + BEHIND]) for at in range(0, behinds, BEHIND))
            rule, ideals = space.memory, space.ideals
            each = [rule.fewest_replicas(ideals, firsts, stop, part) for part in parts]
            least = np.concatenate(each)
        found = np.full((2, behinds, len(firsts)), inf)
        inner = 0
        for level, (alone, several) in enumerate(self._needed(firsts, stop), start=1):
            outside = int(level > self.tier)
            at_least = np.maximum(least, max(inner + 1, LEAST_JOINED) if outside else inner + 1)
            count = no_fewer(alone, several, at_least)
            fits = np.isinf(found[outside]) & (count <= self.sizes[level])
            found[outside] = np.where(fits, count, found[outside])
            inner = 0 if level == self.tier else self.sizes[level]
        return found

    def _alone(self, firsts: Ints, replicas: Floats, behind: int, step: int) -> None:
        """Stages that are not joined to the one in front."""
        total = behind + replicas
        fits = self.crosses[firsts] & (total + self.needed[firsts] <= self.devices)
        self.free.note(firsts[fits], total[fits], step)

    def _begin(self, firsts: Ints, behind: int, fewest: tuple[Floats, Floats], step: int) -> None:
        """The last stages of copies, of every number of them: joined to the stage in front."""
        heavy = ~self.crosses[firsts]
        firsts, inside, outside = firsts[heavy], fewest[0][heavy], fewest[1][heavy]
        if not len(firsts):
            return
        least, most, widths, offsets = self._columns.T[:, :, None]
        held = np.where(most == 1, inside, np.ceil(outside / most))
        total = behind + least * held
        goes_on = (held < widths) & (total + self.needed[firsts] <= self.devices)
        goes_on &= self.sharers[firsts] <= most
        self._hold(firsts, offsets + held, total, goes_on, np.full(len(total), step))

    @cached_property
    def _columns(self) -> Floats:
        """Of each number of copies the fewest and the most, the width, and the column of `joined`
        with which its devices of a copy begin."""
        ends = np.cumsum([wide + 1 for wide in self.widths])
        offsets = [0, *ends[:-1].tolist()]
        each = zip(self.copies, self.widths, offsets, strict=True)
        return np.array([(*copies, wide, offset) for copies, wide, offset in each], np.float64)

    def _join(self, firsts: Ints, sources: Ints, fewest: Floats, step: int) -> None:
        """Stages of copies that have some devices each behind: their first ones, or those joined to
        the stage in front. `fewest` has those of each of the `sources`."""
        places, wide, behind = sources.T[:, :, None]
        least, most, widths, offsets = self._columns[places[:, 0]].T[:, :, None]
        each = np.where(most == 1, fewest[0], np.ceil(fewest[1] / most))
        total, held = behind + least * each, wide + each
        within = (held <= widths) & (total + self.needed[firsts] <= self.devices)
        crosses = self.crosses[firsts]
        ends = np.where(within & crosses, total, inf)
        first = ends.argmin(axis=0)
        self.free.note(firsts, ends[first, np.arange(len(firsts))], step + first)
        goes_on = within & ~crosses & (self.sharers[firsts] <= most) & (held < widths)
        self._hold(firsts, offsets + held, total, goes_on, step + np.arange(len(sources)))

    def _hold(
        self,
        firsts: Ints,
        columns: Floats,
        total: Floats,
        goes_on: NDArray[np.bool_],
        steps: Ints,
    ) -> None:
        """Remember what goes on in the stage in front, with so many devices of each copy: of each
        step a row."""
        row, at = goes_on.nonzero()
        if len(row):
            where = firsts[at] * self.joined.fewest.shape[1] + columns[goes_on].astype(np.int64)
            self.joined.note(where, total[goes_on], steps[row])

    def _trace(self) -> tuple[Joined, ...]:
        found: list[Joined] = []
        first, place, wide, total = 0, -1, 0, int(self.free.fewest[0, 0])
        shares: list[CountedStage] = []
        last = len(self.space.ideals) - 1
        while first < last:
            column = int(self._columns[place, 3]) + wide
            came = self.free.origin[first, 0] if place < 0 else self.joined.origin[first, column]
            stop, behind_place, wide, behind = self.steps[int(came)]
            shares.append(CountedStage(first, stop, total - behind))
            if behind_place < 0:
                copies = self.copies[place][0] if place >= 0 else 0
                found.append(Joined(copies, tuple(shares)))
                shares = []
            first, place, total = stop, behind_place, behind
        return tuple(found)
