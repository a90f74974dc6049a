"""From an order to a program: adds versions, messages, collectives and recomputation."""

from dataclasses import dataclass

import numpy as np

from backend.pipeline.kinds import ONWARD, Bools, Ints, Is, Kind
from backend.pipeline.order import Order
from backend.pipeline.placement import holder_of, pipeline_rank_of, rank_of
from backend.pipeline.program import Program
from backend.pipeline.rows import Rows
from backend.pipeline.schedules.pattern import orders
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape
from backend.pipeline.shape_checks import check_size
from backend.pipeline.versions import number


def lower(schedule: Schedule, shape: Shape) -> Program:
    """The program of one segment.

    A receive stands just before the action that needs it, a send just after the action that
    made it, an all-reduce just before the step of a replicated stage, an averaging just after
    the step of several pipelines. A recomputation stands before the receive of its gradient, so
    that it may fill the wait. Backwards to which no gradient comes have neither. Raises
    `InvalidInput` for a shape that the schedule refuses, or that has too many forwards.
    """
    check_size(shape.num_stages, shape.num_microbatches)
    schedule.check(shape)
    shape = schedule.routed(shape)
    return complete(schedule, shape, orders(schedule, shape))


def complete(schedule: Schedule, shape: Shape, order: Order) -> Program:
    """The program of a given order, by the version policy of `schedule`."""
    version = number(schedule.versions, shape, order)
    idle = schedule.idle_backward(shape)
    return _assembled(schedule.name, shape, order, version, _Inserts.of(shape, order, idle))


@dataclass(frozen=True, slots=True)
class _Inserts:
    """What is added around each row of an order: recomputation, receive, all-reduce before it,
    send, averaging after it. `producer` and `consumer` are the ranks at the other end."""

    again: Bools
    recv: Bools
    producer: Ints
    reduce: Bools
    send: Bools
    consumer: Ints
    average: Bools

    @staticmethod
    def of(shape: Shape, order: Order, idle: Bools) -> "_Inserts":
        """Stages whose backwards are `idle` recompute nothing."""
        onward, step = ONWARD[order.kind], order.kind == Kind.STEP
        before, behind = order.stage - onward, order.stage + onward
        producer = rank_of(shape, before, order.microbatch)
        consumer = rank_of(shape, behind, order.microbatch)
        stages, back = shape.num_stages, onward < 0
        moves = (onward > 0) | back & ~shape.is_one_way[order.stage]
        moves_on = (onward > 0) | back & ~shape.is_one_way[order.stage - 1]
        replicated = np.asarray(shape.replicas)[holder_of(shape, order.stage)] > 1
        again = back & ~idle[order.stage] if shape.recompute else np.zeros_like(step)
        return _Inserts(
            again=again,
            recv=moves & (before >= 0) & (before < stages) & (producer != order.rank),
            producer=producer,
            reduce=step & replicated,
            send=moves_on & (behind >= 0) & (behind < stages) & (consumer != order.rank),
            consumer=consumer,
            average=step if shape.num_pipelines > 1 else np.zeros_like(step),
        )


def _assembled(name: str, shape: Shape, order: Order, version: Ints, added: _Inserts) -> Program:
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
    onward = ONWARD[order.kind]
    sends = np.where(onward > 0, Kind.SEND_ACTIVATION, Kind.SEND_GRADIENT)
    recvs = np.where(onward > 0, Kind.RECV_ACTIVATION, Kind.RECV_GRADIENT)
    put(everything, place, order.kind, order.stage)
    put(added.again, place - before, Kind.RECOMPUTE, order.stage)
    put(added.recv, place - 1, recvs, order.stage - onward, False)
    peer[(place - 1)[added.recv]] = added.producer[added.recv]
    put(added.send, place + 1, sends, order.stage, False)
    peer[(place + 1)[added.send]] = added.consumer[added.send]
    put(added.reduce, place - 1, Kind.ALL_REDUCE, order.stage)
    put(added.average, place + 1, Kind.AVERAGE, order.stage)
    bounds = np.concatenate(([0], ends))[order.bounds]
    groups = _groups(shape, bounds, kind, peer)
    return Program(name, shape, bounds, Rows(kind, stage, microbatch, numbers, peer, groups))


def _groups(shape: Shape, bounds: Ints, kind: Ints, peer: Ints) -> tuple[tuple[int, ...], ...]:
    """Number the groups as they are met first, and write the numbers into `peer`: the pipelines of
    an averaging, the replicas of any other collective."""
    rows = np.flatnonzero(Is.COLLECTIVE[kind])
    if not len(rows):
        return ()
    rank = np.searchsorted(bounds, rows, side="right") - 1
    pipeline, device = np.divmod(rank, shape.num_devices)
    places, holder = shape.num_pipelines * shape.pipeline_size, pipeline_rank_of(shape, rank)
    averages = kind[rows] == Kind.AVERAGE
    code = np.where(averages, places + device, pipeline * shape.pipeline_size + holder)
    names, first, which = np.unique(code, return_index=True, return_inverse=True)
    met = np.argsort(first)
    number = np.empty_like(met)
    number[met] = np.arange(len(met))
    peer[rows] = number[which]
    return tuple(
        shape.group_of(name % shape.pipeline_size, name // shape.pipeline_size)
        if name < places
        else shape.sharing(name - places)
        for name in names[met].tolist()
    )
