"""The order of every rank as arrays: from the rhythm of a schedule, or from its own order."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.pipeline.actions import Compute, Step
from backend.pipeline.columnar.seating import microbatches_of
from backend.pipeline.columnar.table import COMPUTES, Ints, Kind
from backend.pipeline.schedules.rhythm import Rhythm
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Seat, Shape


@dataclass(frozen=True, slots=True)
class Order:
    """The computes of all ranks, one after another: rank r's are `bounds[r]` up to
    `bounds[r + 1]`. Steps have microbatch -1."""

    bounds: Ints
    rank: Ints
    kind: Ints
    stage: Ints
    microbatch: Ints


def orders(schedule: Schedule, shape: Shape) -> Order:
    """What `schedule.order` gives, for all seats."""
    parts = [_seat_order(schedule, seat) for seat in shape.seats]
    kinds, stages, microbatches = zip(*parts, strict=True)
    lengths = [len(kind) for kind in kinds]
    return Order(
        bounds=np.cumsum([0, *lengths]),
        rank=np.repeat(np.arange(shape.num_ranks), lengths),
        kind=np.concatenate(kinds),
        stage=np.concatenate(stages),
        microbatch=np.concatenate(microbatches),
    )


def _seat_order(schedule: Schedule, seat: Seat) -> tuple[Ints, Ints, Ints]:
    even = seat.shape.batch % seat.replicas_here == 0 or not schedule.batched
    if schedule.rhythm is None or not even:
        return _packed(list(schedule.order(seat, seat.shape)))
    rhythm, shape = schedule.rhythm(seat), seat.shape
    own = microbatches_of(seat)
    per_update = shape.batch // seat.replicas_here if schedule.batched else 1
    size = per_update if rhythm.flushes else len(own)
    kind, index = _pattern(size * shape.chunks, rhythm, per_update * shape.chunks, shape.chunks)
    chunk, which = _turns(shape, kind, index)
    microbatch = own.reshape(-1, size)[:, which]
    microbatch[:, kind == Kind.STEP] = -1
    stage = chunk * shape.positions + seat.position
    return np.tile(kind, len(microbatch)), np.tile(stage, len(microbatch)), microbatch.ravel()


def _turns(shape: Shape, kind: Ints, index: Ints) -> tuple[Ints, Ints]:
    """The chunk and the microbatch of the index-th forward, or backward, of a batch: those of
    `interleaved.in_turns`; of a step its chunk, which is its index."""
    size, chunks = shape.positions, shape.chunks
    turn = index // size % chunks
    chunk = np.where(kind == Kind.FORWARD, turn, chunks - 1 - turn)
    step = kind == Kind.STEP
    which = index // (size * chunks) * size + index % size
    return np.where(step, index, chunk), np.where(step, 0, which)


def _pattern(size: int, rhythm: Rhythm, per_update: int, chunks: int) -> tuple[Ints, Ints]:
    """(kind, the how-manieth) of `rhythm.play` over `size` and of its steps, one per chunk.

    Round j is B_j, W_(j-lag), steps, F_(j+ahead); sorting by the round and the place in it
    gives the order.
    """
    every = np.arange(size)
    last = np.repeat(every[per_update - 1 :: per_update], chunks)
    lag = rhythm.lag
    streams: list[tuple[Kind, Ints, Ints]] = [
        (Kind.FORWARD, every, np.maximum(every - rhythm.ahead, -1) * 4 + 3),
        (Kind.BACKWARD if lag is None else Kind.BACKWARD_INPUT, every, every * 4),
        (Kind.STEP, np.arange(len(last)) % chunks, (last + (lag or 0)) * 4 + 2),
    ]
    if lag is not None:
        streams.append((Kind.BACKWARD_WEIGHT, every, (every + lag) * 4 + 1))
    keys = np.concatenate([key for _, _, key in streams])
    kinds = np.concatenate([np.full(len(index), kind.value) for kind, index, _ in streams])
    found = np.argsort(keys, kind="stable")
    return kinds[found], np.concatenate([index for _, index, _ in streams])[found]


def _packed(actions: Sequence[Compute]) -> tuple[Ints, Ints, Ints]:
    kinds = {kind: number for number, kind in enumerate((*COMPUTES, Step))}
    rows = [(kinds[type(a)], a.stage, -1 if isinstance(a, Step) else a.microbatch) for a in actions]
    kind, stage, microbatch = np.array(rows, np.int64).reshape(-1, 3).T
    return kind.copy(), stage.copy(), microbatch.copy()
