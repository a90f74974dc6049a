"""Lowering for long programs: the same table that packing `lower`'s program would give."""

from dataclasses import dataclass

import numpy as np

from backend.pipeline.columnar.numbering import KNOWN, number
from backend.pipeline.columnar.orders import Order, orders
from backend.pipeline.columnar.seating import rank_of
from backend.pipeline.columnar.table import Bools, Ints, Kind, Table, pack
from backend.pipeline.lower import lower
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape


def lower_table(schedule: Schedule, shape: Shape) -> Table:
    """`lower`, in arrays. A version policy that is not among the known ones takes the long
    way round. Raises `InvalidInput` for a shape that the schedule refuses."""
    schedule.check(shape)
    if schedule.versions not in KNOWN:
        return pack(lower(schedule, shape))
    order = orders(schedule, shape)
    version = number(schedule.versions, shape, order)
    return _assembled(schedule.name, shape, order, version, _Inserts.of(shape, order))


@dataclass(frozen=True, slots=True)
class _Inserts:
    """What is added around each row of an order: recomputation, receive, meeting before it,
    send, meeting after it. `maker` and `taker` are the ranks at the other end."""

    again: Bools
    recv: Bools
    maker: Ints
    reduce: Bools
    send: Bools
    taker: Ints
    average: Bools

    @staticmethod
    def of(shape: Shape, order: Order) -> "_Inserts":
        forward, step = order.kind == Kind.FORWARD, order.kind == Kind.STEP
        back = (order.kind == Kind.BACKWARD) | (order.kind == Kind.BACKWARD_INPUT)
        towards = np.where(forward, 1, -1)
        moves = forward | back
        last = shape.num_stages - 1
        maker = rank_of(shape, order.stage - towards, order.microbatch)
        taker = rank_of(shape, order.stage + towards, order.microbatch)
        starts = np.where(forward, order.stage == 0, order.stage == last)
        ends = np.where(forward, order.stage == last, order.stage == 0)
        replicated = np.asarray(shape.replicas)[order.stage % shape.positions] > 1
        return _Inserts(
            again=back if shape.recompute else np.zeros_like(back),
            recv=moves & ~starts & (maker != order.rank),
            maker=maker,
            reduce=step & replicated,
            send=moves & ~ends & (taker != order.rank),
            taker=taker,
            average=step if shape.lanes > 1 else np.zeros_like(step),
        )


def _assembled(name: str, shape: Shape, order: Order, version: Ints, added: _Inserts) -> Table:
    """Every row in its place: (again, recv, reduce) row (send, average)."""
    before = added.again.astype(np.int64) + added.recv + added.reduce
    ends = np.cumsum(before + 1 + added.send + added.average)
    place = ends - 1 - added.send - added.average
    total = int(ends[-1]) if len(ends) else 0
    blank = np.full(total, -1, np.int64)
    kind, stage, microbatch, numbers, peer = (blank.copy() for _ in range(5))

    def put(mask: Bools, at: Ints, what: int | Ints, stages: Ints, read: bool = True) -> None:
        rows = at[mask]
        kind[rows] = what if isinstance(what, int) else what[mask]
        stage[rows] = stages[mask]
        microbatch[rows] = order.microbatch[mask]
        if read:
            numbers[rows] = version[mask]

    everything = np.ones(len(order.kind), np.bool_)
    forward = order.kind == Kind.FORWARD
    flow = np.where(forward, 0, 1)
    put(everything, place, order.kind, order.stage)
    put(added.again, place - before, Kind.RECOMPUTE, order.stage)
    put(added.recv, place - 1, Kind.RECV + flow, order.stage - np.where(forward, 1, -1), False)
    peer[(place - 1)[added.recv]] = added.maker[added.recv]
    put(added.send, place + 1, Kind.SEND + flow, order.stage, False)
    peer[(place + 1)[added.send]] = added.taker[added.send]
    put(added.reduce, place - 1, Kind.ALL_REDUCE, order.stage)
    put(added.average, place + 1, Kind.AVERAGE, order.stage)
    bounds = np.concatenate(([0], ends))[order.bounds]
    groups = _groups(shape, bounds, kind, stage, peer)
    return Table(name, shape, bounds, kind, stage, microbatch, numbers, peer, groups)


def _groups(
    shape: Shape, bounds: Ints, kind: Ints, stage: Ints, peer: Ints
) -> tuple[tuple[int, ...], ...]:
    """Number the groups as they are met first, and write the numbers into `peer`."""
    found: dict[tuple[int, ...], int] = {}
    if shape.lanes == 1 and max(shape.replicas) == 1:
        return ()
    for seat in shape.seats:
        rows = slice(bounds[seat.rank], bounds[seat.rank + 1])
        for meeting, group in (
            (Kind.ALL_REDUCE, shape.group_of(seat.position, seat.lane)),
            (Kind.AVERAGE, shape.sharing(seat.rank)),
        ):
            here = kind[rows] == meeting
            if here.any():
                peer[rows][here] = found.setdefault(group, len(found))
    return tuple(found)
