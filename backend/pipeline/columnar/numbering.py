"""The version policies of `backend.pipeline.versions`, for whole columns at once."""

import numpy as np

from backend.pipeline.columnar.orders import Order
from backend.pipeline.columnar.table import Bools, Ints, Kind
from backend.pipeline.shape import Shape
from backend.pipeline.versions import Policy, current, from_the_input, newest, one_batch_late

KNOWN: tuple[Policy, ...] = (newest, current, from_the_input, one_batch_late)
"""Other policies are numbered one action at a time."""


def number(policy: Policy, shape: Shape, order: Order) -> Ints:
    """The version of every row of `order`; `policy` is one of `KNOWN`."""
    made = steps_before(shape, order)
    version = np.where(order.kind == Kind.STEP, made + 1, made)
    if policy is current:
        return version
    forward = order.kind == Kind.FORWARD
    version[forward] = _read(policy, shape, order, forward, made[forward])
    stash = np.zeros(shape.num_stages * shape.microbatches, np.int64)
    key = order.stage * shape.microbatches + order.microbatch
    stash[key[forward]] = version[forward]
    back = ~forward & (order.kind != Kind.STEP)
    version[back] = stash[key[back]]
    return version


def _read(policy: Policy, shape: Shape, order: Order, forward: Bools, made: Ints) -> Ints:
    stage, microbatch = order.stage[forward], order.microbatch[forward]
    if policy is one_batch_late:
        return np.asarray(np.maximum(microbatch // shape.batch - 1, 0))
    if policy is from_the_input:
        chosen = np.zeros(shape.microbatches, np.int64)
        at_input = stage == 0
        chosen[microbatch[at_input]] = made[at_input] * shape.replicas[0]
        replicas = np.asarray(shape.replicas)[stage % shape.positions]
        return np.asarray(chosen[microbatch] // replicas)
    return made


def steps_before(shape: Shape, order: Order) -> Ints:
    """How many steps of its stage the rank of each row has made before it."""
    return count_before(order.kind == Kind.STEP, order.stage // shape.positions, order.bounds)


def count_before(marked: Bools, group: Ints, bounds: Ints) -> Ints:
    """Per row the marked rows before it in its part (`bounds`) and its group (0, 1, ...)."""
    total = np.zeros(len(marked), np.int64)
    for number in range(int(group.max(initial=-1)) + 1):
        own = marked & (group == number) if group.any() else marked
        count = np.concatenate(([0], np.cumsum(own)))
        before = count[:-1] - np.repeat(count[bounds[:-1]], np.diff(bounds))
        total = np.where(group == number, before, total) if number or group.any() else before
    return total
