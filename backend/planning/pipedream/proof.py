"""A plan against all others, wherever their stages stand: a lower bound, or a better plan."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

import numpy as np

from backend.planning.cost import ROUNDING
from backend.planning.pipedream.any_order import AnyOrder
from backend.planning.pipedream.bisection import CLOSE_BOUND, Optimum
from backend.planning.pipedream.counted import Joined
from backend.planning.pipedream.ideals import Ideals
from backend.planning.pipedream.packing import better
from backend.planning.pipedream.plan_space import PlanSpace
from backend.planning.plan import Partition
from backend.planning.work import WorkSpent

OF_CELLS, OF_FEW, OF_EACH = 0.35, 0.4, 0.7
"""Of the work that is left: for a bound by cells, for plans of few cuts, and of all."""
FEW_CUTS = 100
TRIES = 12
"""Times within which stages are asked for that might find devices, at most."""
CLOSE_TRIES = 5e-3
CLOSE_CELLS = 1e-2
"""A bound by cells of like cuts under a memory limit is not looked for more closely."""


def anywhere(space: PlanSpace, proofs: Iterable[PlanSpace], best: Optimum) -> Optimum:
    """`best` or a faster plan of `space`. Its bound holds for all plans: it is found with the cuts
    of `proofs`, each of which are all that there are or cells that stand for them. Of many cuts a
    few are tried before all of them."""
    is_first = True
    for each in proofs:
        is_alone = isinstance(each.ideals, Ideals)
        best = proved(each.with_share(OF_EACH if is_alone else OF_CELLS), best)
        if best.gap <= CLOSE_BOUND and (is_alone or not space.ideals.complete):
            return best
        if is_first:
            best = _with_few_cuts(space, best)
        is_first = False
    return searched(space, best)


def _with_few_cuts(space: PlanSpace, best: Optimum) -> Optimum:
    """`best` or a faster plan: of the lightest cuts, and then of those that are like its own."""
    ideals = space.ideals
    if not isinstance(ideals, Ideals) or len(ideals) <= 2 * FEW_CUTS:
        return best
    light = replace(space, ideals=ideals.lightest(FEW_CUTS))
    best = searched(light.with_share(OF_FEW), best)
    near = replace(space, ideals=_nearest(ideals, best.partition))
    return searched(near.with_share(OF_FEW), best)


def _nearest(ideals: Ideals, partition: Partition) -> Ideals:
    """Of `ideals` the ends, and those with compute the most like that in front of a cut."""
    layers = ideals.profile.in_order(partition.order).layers
    sums = np.cumsum([0.0, *(layer.compute_and_update for layer in layers)])
    cuts = sums[[0, *(stage.stop for stage in partition.stages)]]
    away = np.abs(ideals.compute[:, None] - cuts).min(axis=1)
    away[[0, -1]] = -1.0
    chosen = np.sort(np.argsort(away, kind="stable")[:FEW_CUTS])
    return Ideals(ideals.profile, ideals.members[chosen], complete=False)


def proved(space: PlanSpace, best: Optimum) -> Optimum:
    """`best` or a faster plan of `space`, with a lower bound of all of them, that of `best` or a
    higher one. Ends early where the work is spent."""
    low, high = best.lower_bound, best.seconds
    is_alone = isinstance(space.ideals, Ideals)
    asked = best.seconds if not is_alone else inf
    close = CLOSE_BOUND if is_alone or space.memory is None else CLOSE_CELLS
    try:
        while high > low * (1 + 4 * ROUNDING):
            near = is_alone and best.seconds <= low * (1 + CLOSE_BOUND)
            if high <= low * (1 + close) and not near:
                break
            below = best.seconds * (1 - 3 * ROUNDING)
            is_new = is_alone and best.seconds <= high and best.seconds < asked  # often the best
            limit = below if is_new or near else low + (high - low) / 2
            asked = best.seconds if is_new else asked
            found = _within(space, limit)
            if found is None:
                low = max(low, limit)
            else:
                best = _placed(space, found, best)
                high = min(high, limit, best.seconds)
            if near:
                break
    except WorkSpent:
        pass
    closed = best.seconds <= low * (1 + 4 * ROUNDING)
    return replace(best, lower_bound=best.seconds if closed else min(low, best.seconds))


def searched(space: PlanSpace, best: Optimum) -> Optimum:
    """`best`, or a faster plan: the least time within which stages find devices too, by
    bisection. The bound stays."""
    low = best.lower_bound
    for _ in range(TRIES):
        if best.seconds <= low * (1 + CLOSE_TRIES):
            break
        limit = low + (best.seconds - low) / 2
        try:
            found = _within(space, limit, is_doubled=True)
        except WorkSpent:
            break
        before = best.seconds
        best = best if found is None else _placed(space, found, best)
        if best.seconds == before:
            low = limit
    return best


def _within(
    space: PlanSpace, limit: float, is_doubled: bool = False
) -> dict[int, tuple[Joined, ...]] | None:
    """By the size of a machine what there is within the limit; None where one knows that there is
    nothing."""
    found = {}
    for tier, size in enumerate(space.cluster.sizes[:-1]):
        if 1 < size < space.cluster.num_devices:
            stages = AnyOrder(space, limit, tier, is_doubled).run()
            if stages is None:
                return None
            found[size] = stages
    return found


def _placed(space: PlanSpace, found: dict[int, tuple[Joined, ...]], best: Optimum) -> Optimum:
    if isinstance(space.ideals, Ideals):
        for block, stages in found.items():
            best = better(space, stages, block, best)
    return best
