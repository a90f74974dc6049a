"""An order improved by moves: one compute of one rank goes to another place in its order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backend.pipeline.synthesis.costs import NEEDS, Sequences, StageCosts, finish
from backend.pipeline.synthesis.greedy import greedy_orders
from backend.pipeline.synthesis.layered import fastest

SAME = 1e-12
"""Relative difference of two ends below which they are the same."""


@dataclass
class Budget:
    """Computes that may still be placed on a clock: work is counted, so that the same question
    has the same answer on every machine."""

    left: int

    def take(self, found: Sequences) -> bool:
        """Whether there is work left to time `found`, which it then costs."""
        self.left -= sum(map(len, found))
        return self.left >= 0


def synthesise(
    costs: StageCosts, microbatches: int, work: int, known: Iterable[Sequences] = ()
) -> Sequences:
    """The fastest order found for `microbatches` from 1 on within `work` computes: the `known` ones
    that ranks may hold and the greedy ones, the fastest first, each improved until no move helps.
    With half of the work a faster one than these is looked for among all orders.
    """
    budget = Budget(work // 2)
    starts = {each: finish(costs, each) for each in (*known, *greedy_orders(costs, microbatches))}
    fits = {each: end for each, end in starts.items() if _fits(costs, each)}
    found = [
        _improved(costs, each, fits[each], budget) for each in sorted(fits, key=fits.__getitem__)
    ]
    end, order = min(found)
    return fastest(costs, microbatches, end * (1 - SAME), work // 2) or order


def _fits(costs: StageCosts, found: Sequences) -> bool:
    return all(map(is_held, found, costs.most_held))


def is_held(own: str, most: int) -> bool:
    """Whether each compute of a rank comes after what it needs there, and it holds at most
    `most` forwards."""
    done, held = dict.fromkeys("FIWfiw", 0), 0
    for kind in own:
        done[kind] += 1
        if need := NEEDS.get(kind):
            if done[kind] > done[need]:
                return False
            held -= kind in "Ww"
        elif held == most:
            return False
        else:
            held += 1
    return True


def _improved(
    costs: StageCosts, found: Sequences, end: float, budget: Budget
) -> tuple[float, Sequences]:
    """The end and the order from which no move leads to an earlier one, or work has run out."""
    least = end
    while True:
        for moved in _moves(costs, found):
            if not budget.take(moved):
                return least, found
            if (now := finish(costs, moved)) < least * (1 - SAME):
                least, found = now, moved
                break
        else:
            return least, found


def _moves(costs: StageCosts, found: Sequences) -> Iterator[Sequences]:
    for rank, own in enumerate(found):
        seen = {own}
        for source in range(len(own)):
            rest = own[:source] + own[source + 1 :]
            for to in range(len(own)):
                moved = rest[:to] + own[source] + rest[to:]
                if moved not in seen and is_held(moved, costs.most_held[rank]):
                    seen.add(moved)
                    yield (*found[:rank], moved, *found[rank + 1 :])
