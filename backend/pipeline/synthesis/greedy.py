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
    deep             a stage begins with as many forwards as it may hold, not with 1F1B's
    whole_waits      weights' halves stand only in waits that they do not make longer
    """

    backwards_first: bool
    deep: bool
    whole_waits: bool


def greedy_orders(costs: StageCosts, microbatches: int) -> Iterator[Sequences]:
    """One order per setting of the three switches; a stage must be allowed to hold one or more."""
    for setting in product((True, False), repeat=3):
        yield _order(costs, microbatches, Switches(*setting))


def _order(costs: StageCosts, microbatches: int, switches: Switches) -> Sequences:
    clock, found = StageClock(costs), [""] * costs.size
    for _ in range(3 * microbatches * costs.size):
        choices = (_choice(clock, stage, microbatches, switches) for stage in range(costs.size))
        _, _, stage, kind = min((*rank[:2], stage, rank[2]) for stage, rank in enumerate(choices))
        clock.place(stage, kind)
        found[stage] += kind
    return tuple(found)


def _choice(
    clock: StageClock, stage: int, microbatches: int, switches: Switches
) -> tuple[float, int, str]:
    """(when it begins, rank among those that begin then, kind) of the stage's next compute."""
    free, costs, done = clock.free[stage], clock.costs, clock.done[stage]
    first = "IF" if switches.backwards_first else "FI"
    begins = {kind: max(free, clock.ready(stage, kind)) for kind in first}
    begins = {kind: begin for kind, begin in begins.items() if done[kind] < microbatches}
    ahead = costs.most_held[stage] if switches.deep else costs.size - stage
    is_full = clock.held(stage) >= costs.most_held[stage]
    if is_full or (not done["I"] and done["F"] >= ahead):
        begins.pop("F", None)
    begin, _, kind = min(
        ((begin, first.index(kind), kind) for kind, begin in begins.items()), default=(inf, 0, "")
    )
    if clock.ready(stage, "W") < inf:
        end = free + costs.weights[stage] if switches.whole_waits else free
        if end < begin or begin == inf or end == begin > free:
            return free, 2, "W"
    return begin, 0, kind
