"""Plans out of a table of every set of devices (`every_set`), the fastest first."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count, islice, permutations, product
from math import inf
from operator import sub

import numpy as np

from backend.planning.cost import ROUNDING
from backend.planning.pipedream.alike_devices import AlikeDevices, Counts
from backend.planning.pipedream.bisection import Optimum
from backend.planning.pipedream.every_set import EACH, ENTRY, EverySet, State
from backend.planning.pipedream.ideals import Ideals
from backend.planning.pipedream.plan_space import PlanSpace
from backend.planning.plan import Partition, Stage
from backend.planning.work import WorkSpent

MOST_CHOICES = 70_000
"""Sets behind a cut, at it and in front of it: as many as eight devices have that all differ."""
FEW_CUTS = 30
"""With fewer cuts no search is worth while."""
MOST_WORK = 2e6
ORDERS, FEW, JUDGED = 256, 4, 30.0
"""Orders of replicas of one plan that are judged at most, replicas of which each order is tried,
and the work of each."""


def best_on_few(space: PlanSpace, best: Optimum | None) -> Optimum | None:
    """`best` or a faster plan, where devices are few; its bound holds for all plans where `space`
    has all cuts and the work suffices. None where nothing fits."""
    devices = AlikeDevices(space.cluster)
    limit = best.seconds * (1 - ROUNDING) if best else inf
    thin = _thinned(space, devices, limit)
    if thin is None:
        return best
    plans, bound = DrawnPlans(EverySet(thin, devices, limit)), 0.0
    with suppress(WorkSpent):
        plans.search.fill()
        for drawn in plans.fastest_first():
            bound = drawn.seconds
            if best and bound >= best.seconds * (1 - ROUNDING):
                break
            best = _judged(space, plans.partitions(drawn), best)
        bound = best.seconds if best else inf
    if best is None or not thin.ideals.complete:
        return best
    return replace(best, lower_bound=min(best.seconds, max(best.lower_bound, bound)))


def _thinned(space: PlanSpace, devices: AlikeDevices, limit: float) -> PlanSpace | None:
    """Without cuts that no plan within the limit has, and with no more than the work allows; None
    where those are too few."""
    ideals, choices, cluster = space.ideals, devices.num_choices(), space.cluster
    if not isinstance(ideals, Ideals) or choices > MOST_CHOICES:
        return None
    sharers = cluster.num_devices if len(cluster.levels) > 1 else 1
    light = ideals.exchanged_bytes <= limit * max(cluster.slowest) * sharers
    light[[0, -1]] = True
    ideals = Ideals(ideals.profile, ideals.members[light], ideals.complete)
    each = min(space.work.left, MOST_WORK) / 2 / choices - EACH
    most = int((max(each, 0.0) / ENTRY) ** 0.5)
    if most < min(FEW_CUTS, len(ideals)):
        return None
    return replace(space, ideals=ideals.lightest(most))


def _judged(
    space: PlanSpace, partitions: Iterable[Partition], best: Optimum | None
) -> Optimum | None:
    """`best`, or one of `partitions` that fits and is faster by the cost model."""
    for partition in partitions:
        space.work.spend(JUDGED)
        seconds = space.seconds(partition)
        is_faster = best is None or seconds < best.seconds * (1 - ROUNDING)
        if is_faster and space.keeps_within(partition):
            best = Optimum(partition, seconds, best.lower_bound if best else 0.0)
    return best


@dataclass(frozen=True, slots=True)
class DrawnStage:
    """Layers between two ideals, and so many devices of each group."""

    first: int
    stop: int
    chosen: Counts


@dataclass(frozen=True, slots=True)
class Drawn:
    """No plan with these stages in front of those of a state is faster than `seconds`."""

    seconds: float
    stages: tuple[DrawnStage, ...]


@dataclass(frozen=True)
class DrawnPlans:
    search: EverySet

    def fastest_first(self) -> Iterator[Drawn]:
        """Every plan but for devices and members of levels that change places. Raises
        `WorkSpent`."""
        search, number = self.search, count()
        last = len(search.compute) - 1
        heap = [
            (float(seconds[0]), 0, next(number), state, Drawn(float(seconds[0]), ()))
            for state, seconds in search.table.items()
            if seconds[0] < search.limit
        ]
        heapify(heap)
        while heap:
            _, first, _, state, drawn = heappop(heap)
            if -first == last:
                yield drawn
                continue
            for behind, more in self._continued(state, drawn, -first):
                at = more.stages[-1].stop
                heappush(heap, (more.seconds, -at, next(number), behind, more))

    def _continued(self, state: State, drawn: Drawn, first: int) -> Iterator[tuple[State, Drawn]]:
        """With one more stage, and what is behind it then."""
        search, (behind, at) = self.search, state
        devices = search.devices
        for chosen in (at,) if search.tells_stages else devices.chosen(behind):
            rest = tuple(map(sub, behind, chosen))
            seconds = np.maximum(search.stages(chosen, sum(rest))[first], drawn.seconds)
            nothing = not search.tells_stages or not any(rest)
            for following in (search.nothing,) if nothing else devices.chosen(rest, rest, chosen):
                search.space.work.spend(EACH)
                table = search.table.get(search.state(rest, following))
                if table is None:
                    continue
                every = np.maximum(seconds, np.maximum(table, search.cuts(following, chosen)))
                for stop in np.flatnonzero(every < search.limit).tolist():
                    stages = (*drawn.stages, DrawnStage(first, stop, chosen))
                    yield (rest, following), Drawn(float(every[stop]), stages)

    def partitions(self, drawn: Drawn) -> Iterator[Partition]:
        """Its stages on devices, with their replicas in some orders."""
        ideals, groups = self.search.space.ideals, self.search.devices.groups
        assert isinstance(ideals, Ideals)
        sizes = ideals.members.sum(axis=1).tolist()
        order = ideals.order(stage.stop for stage in drawn.stages)
        free, placed = [list(group) for group in groups], []
        for stage in drawn.stages:
            taken: list[int] = []
            for group, number in zip(free, stage.chosen, strict=True):
                taken += group[:number]
                del group[:number]
            placed.append(tuple(sorted(taken)))
        several = self.search.tells_stages and len(placed) > 1
        ways = [self._orders(each) if several else (each,) for each in placed]
        for devices in islice(product(*ways), ORDERS):
            yield Partition(
                tuple(
                    Stage(sizes[stage.first], sizes[stage.stop], each)
                    for stage, each in zip(drawn.stages, devices, strict=True)
                ),
                order,
            )

    def _orders(self, devices: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """As they are, those that visit the members of a level in turn, and of few each order."""
        sizes = self.search.devices.cluster.sizes
        in_turn = [sorted(devices, key=partial(_turn, size)) for size in sizes]
        every = permutations(devices) if len(devices) <= FEW else ()
        return tuple(dict.fromkeys((devices, *map(tuple, in_turn), *every)))


def _turn(size: int, device: int) -> tuple[int, int]:
    return device % size, device
