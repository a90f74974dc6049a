"""Devices for stages that were counted and not placed (`any_order`)."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from math import gcd

from backend.planning.pipedream.bisection import CLOSE_BOUND, Optimum
from backend.planning.pipedream.counted import CountedStage, Joined
from backend.planning.pipedream.ideals import Ideals
from backend.planning.pipedream.plan_space import PlanSpace
from backend.planning.plan import Partition, Stage

Slots = dict[tuple[int, int], list[int]]
"""The devices of each part of a plan that stays within a machine: by the number of what is joined
and of its copy."""


def better(space: PlanSpace, found: tuple[Joined, ...], block: int, best: Optimum) -> Optimum:
    """`best`, or the stages that were `found` on devices in machines of `block`, where they fit and
    are faster by more than a trifle."""
    for stages in _widened(tuple(map(_finest, found)), space.cluster.num_devices):
        for partition in _placed(space, stages, block):
            seconds = space.seconds(partition)
            is_faster = seconds < best.seconds * (1 - CLOSE_BOUND)
            if is_faster and space.keeps_within(partition):
                best = replace(best, partition=partition, seconds=seconds)
    return best


def _widened(found: tuple[Joined, ...], devices: int) -> Iterator[tuple[Joined, ...]]:
    """What was found, and the same where idle devices make more copies of what has the most: of
    that there may be none so exactly, or its ring may cost what the search left out."""
    yield found
    taken = [sum(share.replicas for share in each.shares) for each in found]
    at = max(range(len(found)), key=lambda number: (found[number].copies > 1, taken[number]))
    copies = found[at].copies
    if copies < 2:
        return
    most = (devices - sum(taken)) * copies // taken[at]
    for more in sorted({most, most - 1, most // 2, 1} - {0, -1}, reverse=True):
        if more <= most:
            yield (*found[:at], _copied(found[at], copies + more), *found[at + 1 :])


def _copied(each: Joined, copies: int) -> Joined:
    """The same in so many copies."""
    shares = (
        replace(share, replicas=share.replicas // each.copies * copies) for share in each.shares
    )
    return Joined(copies, tuple(shares))


def _finest(each: Joined) -> Joined:
    """The same in as many copies as its replicas admit, where they need not be in one machine."""
    most = gcd(*(share.replicas for share in each.shares))
    return replace(each, copies=most) if each.copies > 1 else each


def _placed(space: PlanSpace, found: tuple[Joined, ...], block: int) -> Iterator[Partition]:
    """What stays within a machine goes first, the largest first, into the fullest machine that has
    room for it or into the emptiest one; the others take what is left."""
    ideals = space.ideals
    assert isinstance(ideals, Ideals)
    sizes = ideals.members.sum(axis=1).tolist()
    order = ideals.order(share.stop for each in found for share in each.shares)
    for sign in (1, -1):
        free = [
            list(range(first, first + block))
            for first in range(0, space.cluster.num_devices, block)
        ]
        slots = _slots(found, free, sign)
        if slots is None:
            continue
        stages: list[Stage] = []
        for number, each in enumerate(found):
            for share in each.shares:
                devices = _devices(share, number, each, slots, free)
                stages.append(Stage(sizes[share.first], sizes[share.stop], devices))
        yield Partition(tuple(stages), order)


def _slots(found: tuple[Joined, ...], free: list[list[int]], sign: int) -> Slots | None:
    """Machines with room for each copy, and for each single stage where there is one; the devices
    are taken out of `free`. None where a copy has none."""
    wanted = []
    for number, each in enumerate(found):
        width = sum(share.replicas for share in each.shares) // max(each.copies, 1)
        wanted += [(width, number, copy) for copy in range(max(each.copies, 1))]
    slots: Slots = {}
    places = defaultdict[int, list[int]](list)  # of the machines with so many devices left: heaps
    for place, machine in enumerate(free):
        places[len(machine)].append(place)
    for width, number, copy in sorted(wanted, key=lambda slot: -slot[0]):
        rooms = [size for size, those in places.items() if size >= width and those]
        if rooms:
            place = heappop(places[min(rooms, key=lambda size: sign * size)])
            machine = free[place]
            slots[number, copy], machine[:width] = machine[:width], []
            heappush(places[len(machine)], place)
        elif found[number].copies:
            return None
    return slots


def _devices(
    share: CountedStage, number: int, each: Joined, slots: Slots, free: list[list[int]]
) -> tuple[int, ...]:
    """Those of one stage: replica k is in copy k mod copies, and the copies of a machine follow
    each other. A stage without a machine takes what is left, of the emptiest machines first."""
    if each.copies:
        own = sorted((slots[number, copy] for copy in range(each.copies)), key=lambda slot: slot[0])
        begun = sum(other.replicas for other in each.shares if other.stop <= share.first)
        start, count = begun // each.copies, share.replicas // each.copies
        return tuple(slot[at] for at in range(start, start + count) for slot in own)
    if (number, 0) in slots:
        return tuple(slots[number, 0])
    taken: list[int] = []
    for machine in sorted(free, key=len, reverse=True):
        count = min(len(machine), share.replicas - len(taken))
        taken += machine[:count]
        del machine[:count]
    return tuple(sorted(taken))
