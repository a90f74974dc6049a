"""Which weights each action reads: version policies, kept apart from the order.

A policy numbers the bare orders of all ranks at once, because a policy such as vertical
sync lets one stage decide for the others. Version 0 is what the segment began with.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from backend.pipeline.actions import Backward, BackwardInput, BackwardWeight, Compute, Forward, Step
from backend.pipeline.shape import Shape

Orders = tuple[tuple[Compute, ...], ...]
"""The compute of every rank, in order."""

Policy = Callable[[Shape, Orders], Orders]
"""The same orders with every version set."""


def newest(shape: Shape, orders: Orders) -> Orders:
    """A forward reads the newest version of its rank, a backward what its forward read.

    After a flush this is the only version there is; without one it is weight stashing
    (PipeDream, section 3.3).
    """
    return tuple(tuple(number(order, lambda forward, made: made)) for order in orders)


def number(order: tuple[Compute, ...], read: Callable[[Forward, int], int]) -> Iterator[Compute]:
    """Number one rank's order: a forward reads `read(forward, versions made so far)`,
    its backward the same, and each step makes the next version of its stage."""
    made: Counter[int] = Counter()
    stashed: dict[tuple[int, int], int] = {}
    for action in order:
        match action:
            case Forward(stage, microbatch):
                version = read(action, made[stage])
                stashed[stage, microbatch] = version
                yield Forward(stage, microbatch, version)
            case Backward(stage, microbatch):
                yield Backward(stage, microbatch, stashed.get((stage, microbatch), 0))
            case BackwardInput(stage, microbatch):
                yield BackwardInput(stage, microbatch, stashed.get((stage, microbatch), 0))
            case BackwardWeight(stage, microbatch):
                yield BackwardWeight(stage, microbatch, stashed.get((stage, microbatch), 0))
            case Step(stage):
                made[stage] += 1
                yield Step(stage, made[stage])
