"""The earliest end over every order of a tiny straight pipeline, found by trying them all."""

from collections.abc import Iterator
from itertools import product
from math import inf

from backend.pipeline.synthesis.costs import StageCosts


def earliest_end(costs: StageCosts, microbatches: int) -> float:
    """Seconds of the fastest order in which every stage holds at most what it may."""
    each = [list(_orders(microbatches, most)) for most in costs.most_held]
    return min(_end(costs, orders) for orders in product(*each))


def _orders(count: int, most: int, f: int = 0, i: int = 0, w: int = 0) -> Iterator[tuple[str, ...]]:
    if w == count:
        yield ()
    if f < count and f - w < most:
        yield from ((f"F{f}", *rest) for rest in _orders(count, most, f + 1, i, w))
    if i < f:
        yield from ((f"I{i}", *rest) for rest in _orders(count, most, f, i + 1, w))
    if w < i:
        yield from ((f"W{w}", *rest) for rest in _orders(count, most, f, i, w + 1))


def _end(costs: StageCosts, orders: tuple[tuple[str, ...], ...]) -> float:
    """The longest path, by relaxing all computes until none moves; infinite round a circle."""
    last, ends = len(orders) - 1, {(s, a): 0.0 for s, own in enumerate(orders) for a in own}
    for _ in range(len(ends) + 1):
        before = dict(ends)
        for stage, own in enumerate(orders):
            onward = back = free = 0.0
            for action in own:
                kind, number = action[0], int(action[1:])
                there = 0.0
                if kind == "F" and stage:
                    onward = max(onward, _links(costs, ends, orders, stage - 1, "F", number))
                    there = onward
                if kind == "I" and stage < last:
                    back = max(back, _links(costs, ends, orders, stage + 1, "I", number))
                    there = back
                took = {"F": costs.forward, "I": costs.inputs, "W": costs.weights}[kind][stage]
                free = ends[stage, action] = max(free, there) + took
        if ends == before:
            return max(ends.values())
    return inf


def _links(
    costs: StageCosts,
    ends: dict[tuple[int, str], float],
    orders: tuple[tuple[str, ...], ...],
    stage: int,
    kind: str,
    number: int,
) -> float:
    """When the message of a microbatch has arrived that `stage` sends, one after another."""
    took = costs.onward[stage] if kind == "F" else costs.back[stage - 1]
    arrived = 0.0
    for turn in range(number + 1):
        arrived = max(arrived, ends[stage, f"{kind}{turn}"]) + took
    return arrived
