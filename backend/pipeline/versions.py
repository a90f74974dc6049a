"""Which weights each action reads: version policies, kept apart from the order.

A policy numbers the rows of all ranks at once, because a policy such as vertical sync lets one
stage decide for the others. Version 0 is what the segment began with.

    newest           a forward reads the newest, its backward the same
    current          a forward reads the newest, its backward what is newest by then
    from_the_input   every stage reads what the input stage chose
    one_batch_late   every stage reads the version before the newest
"""

from collections.abc import Callable

import numpy as np

from backend.pipeline.kinds import Ints, Kind
from backend.pipeline.order import Order
from backend.pipeline.placement import holder_of
from backend.pipeline.shape import Shape

Policy = Callable[[Shape, Order, Ints], Ints]
"""The version that each row reads (of steps it means nothing), given how many of its stage its
rank has made before the row."""


def number(policy: Policy, shape: Shape, order: Order) -> Ints:
    """The version of every row of `order`: each step makes the next one of its stage."""
    made = order.steps_before(shape)
    return np.where(order.kind == Kind.STEP, made + 1, policy(shape, order, made))


def newest(shape: Shape, order: Order, made: Ints) -> Ints:
    """A forward reads the newest version of its rank, a backward what its forward read.

    After a flush this is the only version there is; without one it is weight stashing
    (PipeDream, section 3.3).
    """
    return _stashed(shape, order, made)


def current(shape: Shape, order: Order, made: Ints) -> Ints:
    """Everything reads the newest version there is when it runs: the gradients belong to no
    version at all (the naive pipelining of PipeDream, section 3.3, figure 8)."""
    return made


def from_the_input(shape: Shape, order: Order, made: Ints) -> Ints:
    """Vertical sync (PipeDream, section 3.3): the version at the input stage counts.

    A version stands for the microbatches that it has learned from. Where a stage has another
    number of replicas than the input stage, its rounds are others too; it then reads its
    newest version that has learned from no more than the input's (ours).
    """
    at_input = (order.kind == Kind.FORWARD) & (order.stage == 0)
    chosen = np.zeros(shape.num_microbatches, np.int64)
    chosen[order.microbatch[at_input]] = made[at_input] * shape.replicas[0]
    replicas = np.asarray(shape.replicas)[holder_of(shape, order.stage)]
    return _stashed(shape, order, chosen[order.microbatch] // replicas)


def one_batch_late(shape: Shape, order: Order, made: Ints) -> Ints:
    """Double buffering: microbatch k (from 0) of a pipeline reads version
    max(floor(k / batch) - 1, 0) (PipeDream-2BW, section 3.1)."""
    return np.maximum(order.microbatch // (shape.batch * shape.num_pipelines) - 1, 0)


def _stashed(shape: Shape, order: Order, read: Ints) -> Ints:
    """What each forward reads, and its backward likewise."""
    stash = np.zeros(shape.num_stages * shape.num_microbatches, np.int64)
    key = order.stage * shape.num_microbatches + order.microbatch
    forward = order.kind == Kind.FORWARD
    stash[key[forward]] = read[forward]
    return np.asarray(stash[key])
