"""The smallest bottleneck of a plan space: feasibility asked of ever closer times."""

from dataclasses import dataclass

from backend.planning.cost import ROUNDING
from backend.planning.pipedream.feasibility import feasible
from backend.planning.pipedream.plan_space import PlanSpace
from backend.planning.plan import Partition
from backend.planning.work import WorkSpent

CLOSE = 1e-4
"""Bisect until upper and lower bound are this close; then jump from plan to better plan."""
CLOSE_BOUND = 1e-3
"""The same for a bound that is not proved by a plan."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """A partition with its proof.

    seconds      its bottleneck per minibatch (`backend.planning.pipedream.bottleneck`)
    lower_bound  no plan is faster, wherever its stages stand; equal to `seconds` where the
                 partition is proved to be best
    """

    partition: Partition
    seconds: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """By how much the best plan of all may be faster, as a share of `seconds`."""
        return max(0.0, 1 - self.lower_bound / self.seconds) if self.seconds else 0.0


def improved(space: PlanSpace, start: Partition, seconds: float, bound: float) -> Optimum:
    """The best partition of `space`, `start` of `seconds` or another, where no plan is faster than
    `bound`. The new bound holds for the plans of `space` alone. Ends early where the work is
    spent."""
    best, low = start, bound
    while seconds > low * (1 + ROUNDING):
        near = seconds <= low * (1 + CLOSE)
        if near and not space.ideals.complete:
            break
        limit = seconds * (1 - ROUNDING) if near else low + (seconds - low) / 2
        try:
            pieces = feasible(space, limit)
        except WorkSpent:
            break
        if pieces is not None:
            best = space.partition(pieces)
            seconds = min(limit, space.seconds(best))
        else:
            low = limit
            if near:
                break
    return Optimum(best, seconds, seconds if seconds <= low * (1 + 2 * ROUNDING) else low)


def infeasible_below(space: PlanSpace, low: float, high: float) -> float:
    """The largest time found from `low` to `high` within which `space` has no plan."""
    while high > low * (1 + CLOSE_BOUND):
        middle = low + (high - low) / 2
        try:
            pieces = feasible(space, middle)
        except WorkSpent:
            break
        low, high = (middle, high) if pieces is None else (low, middle)
    return low
