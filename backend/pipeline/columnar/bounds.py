"""What ranks hold at most, counted over whole columns: forwards in flight, live versions."""

import numpy as np

from backend.pipeline.columnar.orders import Order
from backend.pipeline.columnar.table import Bools, Ints, Kind
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape


def in_flight_as_promised(rule: Schedule, shape: Shape, order: Order) -> bool:
    """Whether no rank ever holds more forwards, whose backward is to come, than promised."""
    if not rule.trains:
        return True
    kind = order.kind
    change = (kind == Kind.FORWARD).astype(np.int64)
    change -= (kind == Kind.BACKWARD) | (kind == Kind.BACKWARD_WEIGHT)
    return _at_most(order, np.cumsum(change), [rule.in_flight(seat) for seat in shape.seats])


def live_as_promised(rule: Schedule, shape: Shape, order: Order, version: Ints) -> bool:
    """Whether no rank ever needs more versions of a stage, newest or yet to be read, than
    promised."""
    bounds = [rule.live(seat) for seat in shape.seats]
    chunk = order.stage // shape.positions
    return all(
        _at_most(order, _live(order, version, chunk == number), bounds)
        for number in range(shape.chunks)
    )


def _live(order: Order, version: Ints, here: Bools) -> Ints:
    """Live versions of one stage per rank after each row. A version is named by the row that
    made it; it lives until it is superseded and read for the last time."""
    step = here & (order.kind == Kind.STEP)
    starts, stops = order.bounds[:-1], order.bounds[1:]
    made = np.concatenate(([0], np.cumsum(step)))
    first = np.concatenate(([0], np.cumsum(made[stops] - made[starts] + 1)))
    zero = np.zeros(first[-1], np.bool_)
    zero[first[:-1]] = True
    born = np.empty(first[-1], np.int64)
    born[zero], born[~zero] = starts, np.flatnonzero(step)
    superseded = np.append(born[1:], len(order.kind))
    superseded[first[1:] - 1] = stops
    read = np.zeros(first[-1], np.int64)
    reads = np.flatnonzero(here & (order.kind != Kind.STEP))
    read[first[order.rank[reads]] + version[reads]] = reads
    size = len(order.kind) + 1
    end = np.maximum(superseded, read)
    change = np.bincount(born, minlength=size) - np.bincount(end, minlength=size)
    return np.asarray(np.cumsum(change)[:-1])


def _at_most(order: Order, held: Ints, bounds: list[int]) -> bool:
    if not len(held) or (np.diff(order.bounds) == 0).any():
        return False
    most = np.maximum.reduceat(held, order.bounds[:-1])
    return bool((most <= np.asarray(bounds)).all())
