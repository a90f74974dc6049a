"""The earliest end over every order of a tiny pipeline, straight or a V: all of them are tried."""

from collections.abc import Iterator
from itertools import product
from math import inf

from backend.pipeline.synthesis.costs import StageCosts

Action = tuple[str, int, int]
"""Kind, stage and microbatch."""
Ends = dict[Action, float]


def earliest_end(costs: StageCosts, microbatches: int) -> float:
    """Seconds of the fastest order in which every rank holds at most what it may."""
    size, count = len(costs.most_held), len(costs.forward)
    stages = [sorted({rank, count - 1 - rank} if count > size else {rank}) for rank in range(size)]
    each = [
        list(_orders(microbatches, most, own, dict.fromkeys(product("FIW", own), 0)))
        for most, own in zip(costs.most_held, stages, strict=True)
    ]
    return min(_end(costs, orders) for orders in product(*each))


def _orders(
    count: int, most: int, stages: list[int], done: dict[tuple[str, int], int]
) -> Iterator[tuple[Action, ...]]:
    if all(done["W", stage] == count for stage in stages):
        yield ()
    held = sum(done["F", stage] - done["W", stage] for stage in stages)
    for stage in stages:
        f, i, w = (done[kind, stage] for kind in "FIW")
        may = {"F": f < count and held < most, "I": i < f, "W": w < i}
        for kind in (kind for kind, is_there in may.items() if is_there):
            now = done | {(kind, stage): done[kind, stage] + 1}
            for rest in _orders(count, most, stages, now):
                yield ((kind, stage, done[kind, stage]), *rest)


def _end(costs: StageCosts, orders: tuple[tuple[Action, ...], ...]) -> float:
    """The longest path, by relaxing all computes until none moves; infinite round a circle."""
    rank_of = {action: rank for rank, own in enumerate(orders) for action in own}
    ends: Ends = dict.fromkeys(rank_of, 0.0)
    last = len(costs.forward) - 1
    for _ in range(len(ends) + 1):
        before = dict(ends)
        for own in orders:
            free = 0.0
            for action in own:
                kind, stage, number = action
                there = 0.0
                if kind == "F" and stage:
                    there = _arrives(costs, ends, orders, rank_of, ("F", stage - 1, number))
                if kind == "I" and stage < last:
                    there = _arrives(costs, ends, orders, rank_of, ("I", stage + 1, number))
                took = {"F": costs.forward, "I": costs.inputs, "W": costs.weights}[kind][stage]
                free = ends[action] = max(free, there) + took
        if ends == before:
            return max(ends.values())
    return inf


def _arrives(
    costs: StageCosts,
    ends: Ends,
    orders: tuple[tuple[Action, ...], ...],
    rank_of: dict[Action, int],
    sent: Action,
) -> float:
    """When the message that `sent` makes has come: behind those before it to the same rank."""
    here, free = rank_of[sent], {-1: 0.0, 1: 0.0}
    for action in orders[here]:
        kind, stage, number = action
        taker = {"F": ("F", stage + 1, number), "I": ("I", stage - 1, number)}.get(kind)
        to = rank_of.get(taker, here) if taker else here
        if to != here:
            took = costs.onward[stage] if kind == "F" else costs.back[stage - 1]
            free[to - here] = max(free[to - here], ends[action]) + took
        if action == sent:
            return free[to - here] if to != here else ends[action]
    raise AssertionError(sent)
