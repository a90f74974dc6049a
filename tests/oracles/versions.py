"""Which weights each action reads, action by action.

A policy numbers the bare orders of all ranks at once, because a policy such as vertical
sync lets one stage decide for the others. Version 0 is what the segment began with.

    newest           a forward reads the newest, its backward the same
    current          a forward reads the newest, its backward what is newest by then
    from_the_input   every stage reads what the input stage chose
    one_batch_late   every stage reads the version before the newest
"""

from collections import Counter
from collections.abc import Callable, Iterator

from backend.pipeline import versions
from backend.pipeline.actions import (
    Backward,
    BackwardInput,
    BackwardWeight,
    Compute,
    Forward,
    Recompute,
    Step,
)
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape

Orders = tuple[tuple[Compute, ...], ...]
"""The compute of every rank, in order."""

Policy = Callable[[Shape, Orders], Orders]
"""The same orders with every version set."""

Reading = Callable[[Forward, int], int]
"""The version that a forward reads, given how many its rank has made of its stage."""


def newest(shape: Shape, orders: Orders) -> Orders:
    """A forward reads the newest version of its rank, a backward what its forward read.

    After a flush this is the only version there is; without one it is weight stashing
    (PipeDream, section 3.3).
    """
    return tuple(tuple(number(order, lambda forward, made: made)) for order in orders)


def current(shape: Shape, orders: Orders) -> Orders:
    """Everything reads the newest version there is when it runs: the gradients belong to no
    version at all (the naive pipelining of PipeDream, section 3.3, figure 8)."""
    return tuple(tuple(number(order, lambda forward, made: made, stash=False)) for order in orders)


def from_the_input(shape: Shape, orders: Orders) -> Orders:
    """Vertical sync (PipeDream, section 3.3): the version at the input stage counts.

    A version stands for the microbatches that it has learned from. Where a stage has another
    number of replicas than the input stage, its rounds are others too; it then reads its
    newest version that has learned from no more than the input's (ours).
    """
    chosen = {
        action.microbatch: action.version * shape.replicas[0]
        for order in newest(shape, orders)
        for action in order
        if isinstance(action, Forward) and action.stage == 0
    }

    def read(forward: Forward, made: int) -> int:
        return chosen[forward.microbatch] // shape.replicas[shape.pipeline_rank_of(forward.stage)]

    return tuple(tuple(number(order, read)) for order in orders)


def one_batch_late(shape: Shape, orders: Orders) -> Orders:
    """Double buffering: microbatch k (from 0) of a pipeline reads version
    max(floor(k / batch) - 1, 0) (PipeDream-2BW, section 3.1)."""

    def read(forward: Forward, made: int) -> int:
        return max(shape.turn_of(forward.microbatch) // shape.batch - 1, 0)

    return tuple(tuple(number(order, read)) for order in orders)


def number(order: tuple[Compute, ...], read: Reading, stash: bool = True) -> Iterator[Compute]:
    """Number one rank's order: a forward reads `read(forward, versions made so far)`, its
    backward the same (without `stash` what is newest by then), and each step makes the next
    version of its stage."""
    made: Counter[int] = Counter()
    stashed: dict[tuple[int, int], int] = {}

    def back(stage: int, microbatch: int) -> int:
        return stashed.get((stage, microbatch), 0) if stash else made[stage]

    for action in order:
        match action:
            case Forward(stage, microbatch):
                version = read(action, made[stage])
                stashed[stage, microbatch] = version
                yield Forward(stage, microbatch, version)
            case Recompute(stage, microbatch):
                yield Recompute(stage, microbatch, back(stage, microbatch))
            case Backward(stage, microbatch):
                yield Backward(stage, microbatch, back(stage, microbatch))
            case BackwardInput(stage, microbatch):
                yield BackwardInput(stage, microbatch, back(stage, microbatch))
            case BackwardWeight(stage, microbatch):
                yield BackwardWeight(stage, microbatch, back(stage, microbatch))
            case Step(stage):
                made[stage] += 1
                yield Step(stage, made[stage])


def policy(rule: Schedule) -> Policy:
    """The readable form of the policy that `rule` names."""
    return {
        versions.newest: newest,
        versions.current: current,
        versions.from_the_input: from_the_input,
        versions.one_batch_late: one_batch_late,
    }[rule.versions]
