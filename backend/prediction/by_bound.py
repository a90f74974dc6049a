"""Plans in the order of their bounds, which are worked out for those that come first only."""

from dataclasses import dataclass, field
from heapq import heappop, heappush, nsmallest

from backend.planning.plan import Plan
from backend.prediction.simulations import Simulations

Entry = tuple[float, bool, int, Plan]
"""The negative bound, whether it is the whole one and not the rough one, the number, the plan."""


@dataclass
class ByBound:
    """A queue: the highest bound first, of equals the lowest number. Its rough bound is never
    below a plan's bound, so that plans come in the order in which they would with all worked out.
    """

    simulations: Simulations
    _entries: list[Entry] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, number: int, plan: Plan) -> None:
        heappush(self._entries, (-self.simulations.rough_bound(plan), False, number, plan))

    def first(self, enough: float = 0.0) -> tuple[float, int]:
        """The bound and the number of the first; one that is no higher than `enough` may be
        rough."""
        bound, is_whole, number, plan = self._entries[0]
        while not is_whole and -bound > enough:
            heappop(self._entries)
            heappush(self._entries, (-self.simulations.bound(plan), True, number, plan))
            bound, is_whole, number, plan = self._entries[0]
        return -bound, number

    def pop(self) -> tuple[int, Plan]:
        """The number and the plan of the first."""
        self.first()
        return heappop(self._entries)[2:]

    def above(self, enough: float) -> bool:
        """Whether a plan is left whose bound is higher."""
        return bool(self._entries) and self.first(enough)[0] > enough

    def rest(self, most: int) -> list[tuple[float, Plan]]:
        """Up to so many that are left, with bounds that may be rough."""
        return [(-bound, plan) for bound, _, _, plan in nsmallest(most, self._entries)]
