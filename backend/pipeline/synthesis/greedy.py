"""An order placed compute by compute: whatever can begin first, by three switches.

The idea is that of Qi et al., ICLR 2024, arXiv 2401.10241, section 3.1: a greedy order with rules
that are on or off, of which the best is taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import inf

from backend.pipeline.synthesis.costs import Sequences, StageClock, StageCosts


@dataclass(frozen=True, slots=True)
class Switches:
    """backwards_first  a backward that is there is taken before a forward that is there
    deep             a rank begins with as many forwards as it may hold, not with 1F1B's (ZB-V's)
    whole_waits      weights' halves stand only in waits that they do not make longer
    """

    backwards_first: bool
    deep: bool
    whole_waits: bool

    @property
    def preferred(self) -> str:
        """The kinds whose turn comes first; of a V the second chunk's, which ends sooner."""
        return "iIfF" if self.backwards_first else "fFiI"


def greedy_orders(costs: StageCosts, microbatches: int) -> Iterator[Sequences]:
    """One order per setting of the three switches; a rank must be allowed to hold a forward of
    each of its stages."""
    for setting in product((True, False), repeat=3):
        yield _order(costs, microbatches, Switches(*setting))


def _order(costs: StageCosts, microbatches: int, switches: Switches) -> Sequences:
    clock, found = StageClock(costs), [""] * costs.size
    for _ in range(len(costs.kinds) * microbatches * costs.size):
        choices = (_choice(clock, rank, microbatches, switches) for rank in range(costs.size))
        _, _, rank, kind = min((*each[:2], rank, each[2]) for rank, each in enumerate(choices))
        clock.place(rank, kind, clock.ready(rank, kind))
        found[rank] += kind
    return tuple(found)


def _choice(
    clock: StageClock, rank: int, microbatches: int, switches: Switches
) -> tuple[float, int, str]:
    """(when it begins, place among those that begin then, kind) of the rank's next compute."""
    free, costs, done = clock.free[rank], clock.costs, clock.done[rank]
    first = [kind for kind in switches.preferred if done.get(kind, microbatches) < microbatches]
    begins = {kind: max(free, clock.ready(rank, kind)) for kind in first}
    for kind in ("F", "f"):
        if kind in begins and not costs.has_room(rank, kind, *clock.held(rank)):
            del begins[kind]
    if not switches.deep and not done["I"] and done["F"] >= _warm_up(costs, rank):
        begins.pop("F", None)
    begin, _, kind = min(
        ((begin, first.index(kind), kind) for kind, begin in begins.items()), default=(inf, 0, "")
    )
    late = next((each for each in "wW" if each in done and clock.ready(rank, each) < inf), "")
    if late:
        end = free + costs.seconds[rank][late] if switches.whole_waits else free
        if end < begin or begin == inf or end == begin > free:
            return free, 2, late
    return begin, 0, kind


def _warm_up(costs: StageCosts, rank: int) -> int:
    """Forwards of the first chunk before the first backward of its inputs."""
    left = costs.size - rank
    return left if costs.kinds == "FIW" else 2 * left - 1
