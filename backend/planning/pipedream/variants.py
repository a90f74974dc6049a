"""Plans of other kinds that a memory limit makes worth while: on fewer devices, and a pipeline that
is copied over machines in front of plain stages."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice, product
from math import prod

import numpy as np

from backend.cluster.cluster import Cluster
from backend.planning.cost import ROUNDING, cut_seconds, sync_seconds
from backend.planning.pipedream.bisection import CLOSE_BOUND, Optimum
from backend.planning.pipedream.feasibility import FAR, LayingOut, feasible
from backend.planning.pipedream.ideals import Ideals
from backend.planning.pipedream.plan_space import Piece, PlanSpace
from backend.planning.plan import Partition, Stage
from backend.planning.work import WorkSpent

Within = Callable[[float], Partition | None]
"""A plan of some kind within so many seconds, if the search finds one."""
MOST_SHAPES = 64
"""Of larger clusters those parts are tried whose counts are powers of two."""
MOST_WORK = 300_000
"""Cuts times devices, over all questions that are asked at least."""
FEW_CUTS, MORE_WORK = 100, 3_000_000
"""Cuts of further kinds of plans, and the same of them."""


def with_variants(space: PlanSpace, best: Optimum) -> Optimum:
    """`best`, or a faster plan of another kind that fits the memory. The bound stays."""
    cluster = space.cluster
    if not cluster.is_uniform or len(cluster.levels) == 1:
        return best
    for within in _tried(space):
        if space.work.is_spent or best.gap <= CLOSE_BOUND:
            break
        best = _improved(space, within, best)
    return best


def _tried(space: PlanSpace) -> Iterator[Within]:
    """The kinds that are asked for: some with all cuts, further ones with the lightest."""
    ideals, devices = space.ideals, space.cluster.num_devices
    assert isinstance(ideals, Ideals)
    first = MOST_WORK // (len(ideals) * devices)
    yield from islice(_kinds(space), first)
    light = replace(space, ideals=ideals.lightest(FEW_CUTS))
    yield from islice(_kinds(light), first, MORE_WORK // (len(light.ideals) * devices))


def _improved(space: PlanSpace, within: Within, best: Optimum) -> Optimum:
    """`best`, or the fastest plan of one kind that is found by bisection."""
    low = best.lower_bound
    limit = best.seconds * (1 - CLOSE_BOUND)
    is_first = True
    while best.seconds > low * (1 + CLOSE_BOUND):
        try:
            found = within(limit)
        except WorkSpent:
            break
        if found and _is_better(space, found, best):
            best = replace(best, partition=found, seconds=space.seconds(found))
        elif is_first:
            break
        else:
            low = limit
        limit, is_first = low + (best.seconds - low) / 2, False
    return best


def _is_better(space: PlanSpace, partition: Partition, best: Optimum) -> bool:
    assert space.memory is not None
    if space.seconds(partition) > best.seconds * (1 - ROUNDING):
        return False
    return space.memory.fits(space.ideals.profile, space.cluster, partition)


def _kinds(space: PlanSpace) -> Iterator[Within]:
    """The whole cluster and its parts, the larger ones first: of each the first members of each
    level, so that idle neighbours do not count as in use; and in each so many devices of every
    machine for the pipeline that is copied."""
    for part in _parts(space.cluster):
        there = replace(space, cluster=part)
        if part.num_devices < space.cluster.num_devices:
            yield partial(_plain, there, space.cluster)
        for each in range(1, part.levels[0].count + 1):
            yield partial(_headed, there, space.cluster, each)


def _parts(cluster: Cluster) -> list[Cluster]:
    """Of each level so many members."""
    counts = [list(range(1, level.count + 1)) for level in cluster.levels]
    if prod(map(len, counts)) > MOST_SHAPES:
        counts = [sorted({2**n for n in range(len(x).bit_length())} | {len(x)}) for x in counts]
    found = sorted(product(*counts), key=prod, reverse=True)
    return [_with_counts(cluster, chosen) for chosen in found]


def _plain(space: PlanSpace, whole: Cluster, limit: float) -> Partition | None:
    pieces = feasible(space, limit)
    return None if pieces is None else _renumbered(space.partition(pieces), space.cluster, whole)


def _headed(space: PlanSpace, whole: Cluster, each: int, limit: float) -> Partition | None:
    cluster, ideals = space.cluster, space.ideals
    assert isinstance(ideals, Ideals)
    block, *outer = (level.count for level in cluster.levels)
    machines = cluster.num_devices // block
    head = replace(space, cluster=_with_counts(cluster, (each,)))
    rest = _with_counts(cluster, (block - each, *outer)) if each < block else None
    tail = replace(space, cluster=rest) if rest else None
    found = _copied_in_front(head, tail, machines, cluster.slowest[-1], limit)
    if found is None:
        return None
    sizes = ideals.members.sum(axis=1).tolist()
    stages = []
    for piece in found[0]:
        inner = range(each - piece.end, each - piece.start)
        devices = tuple(d + m * block for d in inner for m in range(machines))
        stages.append(Stage(sizes[piece.first], sizes[piece.stop], devices))
    for piece in found[1]:
        assert rest
        places = range(rest.num_devices - piece.end, rest.num_devices - piece.start)
        devices = tuple(each + _number(place, rest, cluster) for place in places)
        stages.append(Stage(sizes[piece.first], sizes[piece.stop], devices))
    order = ideals.order(piece.stop for piece in chain(*found))
    return _renumbered(Partition(tuple(stages), order), cluster, whole)


def _copied_in_front(
    head: PlanSpace, tail: PlanSpace | None, machines: int, bandwidth: float, limit: float
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]] | None:
    """The pieces of a pipeline that stands in `machines` machines alike, with the devices of `head`
    in each, and those of plain stages behind it on the devices of `tail`; None where the search
    finds none. `bandwidth` is that between machines."""
    last = len(head.ideals) - 1
    taken = np.full(last + 1, -1)
    if tail:
        behind = LayingOut(tail, limit, tail.cluster.num_devices, is_part=True)
        behind.run()
        ready = behind.table < FAR
        taken = np.where(ready.any(axis=1), ready.argmax(axis=1), -1)
    weights = head.ideals.parameters - head.ideals.parameters[0]
    synced = sync_seconds(weights, machines, bandwidth) <= limit * machines
    light = cut_seconds(head.ideals.exchanged_bytes, bandwidth) <= limit
    taken[last] = 0
    light[last] = True
    taken[~(synced & light)] = -1
    devices = head.cluster.num_devices
    pieces = LayingOut(head, limit * machines, devices, machines, taken, is_part=True).run()
    if not pieces:
        return None
    at = pieces[-1].stop
    return pieces, behind.trace(at, int(taken[at])) if tail and at < last else ()


def _with_counts(cluster: Cluster, counts: tuple[int, ...]) -> Cluster:
    """So many members of each of the innermost levels."""
    levels = zip(cluster.levels, counts, strict=False)
    return Cluster(tuple(replace(level, count=count) for level, count in levels), cluster.each[0])


def _renumbered(partition: Partition, part: Cluster, whole: Cluster) -> Partition:
    """A plan of `part` with the numbers that its devices have in the whole."""
    stages = (
        replace(stage, devices=tuple(_number(device, part, whole) for device in stage.devices))
        for stage in partition.stages
    )
    return replace(partition, stages=tuple(stages))


def _number(device: int, part: Cluster, whole: Cluster) -> int:
    """In `whole` the number of a device of `part`, which has the first members of each level."""
    found = 0
    for level, size in zip(part.levels, whole.sizes, strict=False):
        device, place = divmod(device, level.count)
        found += place * size
    return found
