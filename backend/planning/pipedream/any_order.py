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

from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.planning.cost import ROUNDING, Floats, members_needed, no_fewer
from backend.planning.pipedream.feasibility import PER_BOUND, PER_CUT, START, STEP
from backend.planning.pipedream.plan_space import PlanSpace

Ints = NDArray[np.int64]
FEW_COPIES = 32
"""Up to so many each number of copies is thought of, of more some that stand for those up to the
next: with the devices of the fewest and the time of the most."""
COARSER = 1.1
LEAST_JOINED = 2
"""Stages on each machine that copies have, of one device at least."""


@dataclass(frozen=True, slots=True)
class CountedStage:
    """A stage between two ideals, on so many devices anywhere."""

    first: int
    stop: int
    replicas: int


@dataclass(frozen=True, slots=True)
class Joined:
    """Stages in `copies` that are each within a machine; one stage alone is anywhere, as 0."""

    copies: int
    shares: tuple[CountedStage, ...]


@dataclass
class _Reached:
    """Per ideal, and per devices of a copy that its machine holds already, the fewest devices
    behind; and from which step they come."""

    fewest: Floats
    origin: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.origin = np.full(self.fewest.shape, -1, dtype=np.int64)

    def note(self, at: Ints, behind: Floats, step: int) -> None:
        """Keep `behind` where they are fewer; `at` counts through both axes."""
        fewest = self.fewest.reshape(-1)
        better = behind < fewest[at]
        if better.any():
            fewest[at[better]] = behind[better]
            self.origin.reshape(-1)[at[better]] = step


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
        self.copies = _copies(self.machines, self.block)
        self.widths = [self._widest(least) for least, _ in self.copies]
        self.free = _Reached(np.full((len(ideals), 1), inf))
        self.joined = [_Reached(np.full((len(ideals), wide + 1), inf)) for wide in self.widths]

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

    def _sources(self, stop: int) -> list[tuple[int, int, int]]:
        """What is behind `stop`: the place in `copies` (-1 = not joined), devices of a copy and
        in all; without those that are no better than another."""
        found = []
        if self.free.fewest[stop, 0] < self.devices:
            found.append((-1, 0, int(self.free.fewest[stop, 0])))
        for place, reached in enumerate(self.joined):
            best = inf
            for wide in np.flatnonzero(np.isfinite(reached.fewest[stop, :-1])).tolist():
                if reached.fewest[stop, wide] < best:
                    best = reached.fewest[stop, wide]
                    found.append((place, wide, int(best)))
        return found

    def _extend(self, stop: int, sources: list[tuple[int, int, int]]) -> None:
        space, least = self.space, min(behind for _, _, behind in sources)
        firsts = self.open[: np.searchsorted(self.open, stop)]
        space.work.spend(STEP + PER_CUT * len(firsts))
        within = space.between(firsts, stop) <= (self.devices - least) * self.limit
        firsts = firsts[within & (self.needed[firsts] + least < self.devices + 1)]
        firsts = firsts[space.ideals.nested_in(firsts, stop)]
        if not len(firsts):
            return
        needed = self._needed(firsts, stop)
        known: dict[int, tuple[Floats, Floats]] = {}
        for place, wide, behind in sources:
            if behind not in known:
                known[behind] = self._fewest(firsts, stop, behind, needed)
            space.work.spend(STEP / 2 * (1 if place >= 0 else len(self.copies)))
            self.steps.append((stop, place, wide, behind))
            inside, outside = known[behind]
            if place < 0:
                self._alone(firsts, np.fmin(inside, outside), behind)
                for other in range(len(self.copies)):
                    self._join(firsts, other, 0, behind, (inside, outside))
            else:
                self._join(firsts, place, wide, behind, (inside, outside))

    def _needed(self, firsts: Ints, stop: int) -> list[tuple[Any, Any]]:
        """The `members_needed` at each level."""
        compute, weights = self.space.between(firsts, stop), self.space.ideals.weights(firsts, stop)
        return [
            members_needed(compute, weights, bandwidth, self.limit, self.space.overlap)
            for bandwidth in self.space.cluster.slowest
        ]

    def _fewest(
        self, firsts: Ints, stop: int, behind: int, needed: list[tuple[Any, Any]]
    ) -> tuple[Floats, Floats]:
        """The fewest replicas within one machine, and over several; infinite where none do."""
        space = self.space
        least: Floats | float = 1.0
        if space.memory is not None:
            bounds = space.bounds(behind)
            space.work.spend(PER_BOUND * len(firsts) * len(bounds.replicas))
            least = space.memory.fewest_replicas(space.ideals, firsts, stop, bounds)
        space.work.spend(PER_CUT * len(firsts))
        found = [np.full(len(firsts), inf), np.full(len(firsts), inf)]
        inner = 0
        for level, (alone, several) in enumerate(needed, start=1):
            outside = level > self.tier
            at_least = np.maximum(least, max(inner + 1, LEAST_JOINED) if outside else inner + 1)
            count = no_fewer(alone, several, at_least)
            fits = np.isinf(found[outside]) & (count <= self.sizes[level])
            found[outside][fits] = count[fits]
            inner = 0 if level == self.tier else self.sizes[level]
        return found[0], found[1]

    def _alone(self, firsts: Ints, replicas: Floats, behind: int) -> None:
        """Stages that are not joined to the one in front."""
        total = behind + replicas
        fits = self.crosses[firsts] & (total + self.needed[firsts] <= self.devices)
        self.free.note(firsts[fits], total[fits], len(self.steps) - 1)

    def _join(
        self, firsts: Ints, place: int, wide: int, behind: int, fewest: tuple[Floats, Floats]
    ) -> None:
        """Stages of copies that have `wide` devices each behind: their first ones, or those joined
        to the stage in front."""
        least, most = self.copies[place]
        each = fewest[0] if most == 1 else np.ceil(fewest[1] / most)
        total, held = behind + least * each, wide + each
        within = (held <= self.widths[place]) & (total + self.needed[firsts] <= self.devices)
        if wide:
            ends = within & self.crosses[firsts]
            self.free.note(firsts[ends], total[ends], len(self.steps) - 1)
        goes_on = within & ~self.crosses[firsts] & (self.sharers[firsts] <= most)
        goes_on &= held < self.widths[place]
        if goes_on.any():
            at = firsts[goes_on] * (self.widths[place] + 1) + held[goes_on].astype(np.int64)
            self.joined[place].note(at, total[goes_on], len(self.steps) - 1)

    def _trace(self) -> tuple[Joined, ...]:
        found: list[Joined] = []
        first, place, wide, total = 0, -1, 0, int(self.free.fewest[0, 0])
        shares: list[CountedStage] = []
        last = len(self.space.ideals) - 1
        while first < last:
            reached = self.free if place < 0 else self.joined[place]
            came = reached.origin[first, wide]
            stop, behind_place, wide, behind = self.steps[int(came)]
            shares.append(CountedStage(first, stop, total - behind))
            if behind_place < 0:
                copies = self.copies[place][0] if place >= 0 else 0
                found.append(Joined(copies, tuple(shares)))
                shares = []
            first, place, total = stop, behind_place, behind
        return tuple(found)


def _copies(machines: int, block: int) -> list[tuple[int, int]]:
    """The fewest and the most of each number of copies that is thought of, one and then the largest
    first: up to as many as there are machines, times the smallest pipelines that are in each."""
    most = machines * (block // LEAST_JOINED)
    starts = list(range(1, min(FEW_COPIES, most) + 1))
    starts += accumulate(range(64), lambda at, _: int(at * COARSER) + 1, initial=FEW_COPIES + 1)
    starts = [start for start in starts if start <= most] or [1]
    ends = [*(start - 1 for start in starts[1:]), max(most, 1)]
    one, *others = zip(starts, ends, strict=True)
    return [one, *reversed(others)]
