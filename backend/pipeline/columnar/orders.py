"""The order of every rank as arrays: from the rhythm of a schedule, or from its own order."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from backend.pipeline.actions import Compute, Step
from backend.pipeline.columnar.seating import microbatches_at
from backend.pipeline.columnar.table import COMPUTES, Ints, Kind
from backend.pipeline.schedules.rhythm import Rhythm
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Seat, Shape

Part = tuple[Ints, Ints, Ints]
"""Kinds, stages and microbatches of one rank."""


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
    parts: dict[int, Part] = {}
    alike: defaultdict[tuple[int, bool, bool], list[tuple[Seat, Rhythm]]] = defaultdict(list)
    for seat in shape.seats:
        even = shape.batch % seat.replicas_here == 0 or not schedule.batched
        if schedule.rhythm is None or not even:
            parts[seat.rank] = _packed(list(schedule.order(seat, shape)))
        else:
            rhythm = schedule.rhythm(seat)
            key = seat.replicas_here, rhythm.flushes, rhythm.lag is None
            alike[key].append((seat, rhythm))
    for pairs in alike.values():
        seats, rhythms = zip(*pairs, strict=True)
        played = _played(schedule, seats, rhythms)
        parts |= {seat.rank: part for seat, part in zip(seats, played, strict=True)}
    kinds, stages, microbatches = zip(*(parts[seat.rank] for seat in shape.seats), strict=True)
    lengths = [len(kind) for kind in kinds]
    return Order(
        bounds=np.cumsum([0, *lengths]),
        rank=np.repeat(np.arange(shape.num_ranks), lengths),
        kind=np.concatenate(kinds),
        stage=np.concatenate(stages),
        microbatch=np.concatenate(microbatches),
    )


def _played(schedule: Schedule, seats: Sequence[Seat], rhythms: Sequence[Rhythm]) -> Iterator[Part]:
    """The orders of seats with as many microbatches each, in the rhythm of each."""
    shape, here = seats[0].shape, seats[0].replicas_here
    count = shape.lane_microbatches // here
    per_update = shape.batch // here if schedule.batched else 1
    size = per_update if rhythms[0].flushes else count
    kind, index = _pattern(size, rhythms, per_update, shape.chunks)
    chunk, which = _turns(shape, kind, index)
    stage = chunk * shape.positions + np.array([[seat.position] for seat in seats])
    starts = np.arange(0, count, size).reshape(-1, 1)
    microbatch = microbatches_at(seats, starts + which[:, np.newaxis])
    microbatch = np.where((kind == Kind.STEP)[:, np.newaxis], -1, microbatch)
    again = 1, len(starts)
    every = np.tile(kind, again), np.tile(stage, again), microbatch.reshape(len(seats), -1)
    return zip(*every, strict=True)


def _turns(shape: Shape, kind: Ints, index: Ints) -> tuple[Ints, Ints]:
    """The chunk and the microbatch of the index-th forward, or backward, of a batch: those of
    `interleaved.in_turns`; of a step its chunk, which is its index."""
    step = kind == Kind.STEP
    if shape.chunks == 1:
        return np.zeros_like(index), np.where(step, 0, index)
    size, chunks = shape.positions, shape.chunks
    turn = index // size % chunks
    chunk = np.where(kind == Kind.FORWARD, turn, chunks - 1 - turn)
    which = index // (size * chunks) * size + index % size
    return np.where(step, index, chunk), np.where(step, 0, which)


def _pattern(
    size: int, rhythms: Sequence[Rhythm], per_update: int, chunks: int
) -> tuple[Ints, Ints]:
    """(kind, the how-manieth) of `rhythm.play` over `size` and of its steps, one per chunk; a
    line per rhythm.

    Round j is B_j, W_(j-lag), steps, F_(j+ahead); sorting by the round and the place in it
    gives the order.
    """
    every = np.arange(size * chunks)
    last = np.repeat(every[per_update * chunks - 1 :: per_update * chunks], chunks)
    ahead = np.array([[rhythm.ahead] for rhythm in rhythms])
    lag = np.array([[rhythm.lag or 0] for rhythm in rhythms])
    split = rhythms[0].lag is not None
    streams: list[tuple[int, Ints, Ints]] = [
        (Kind.FORWARD, every, np.maximum(every - ahead, -1) * 4 + 3),
        (Kind.BACKWARD_INPUT if split else Kind.BACKWARD, every, every * 4 + 0 * lag),
        (Kind.STEP, np.arange(len(last)) % chunks, (last + lag) * 4 + 2),
    ]
    if split:
        streams.append((Kind.BACKWARD_WEIGHT, every, (every + lag) * 4 + 1))
    kinds = np.repeat([kind for kind, _, _ in streams], [len(index) for _, index, _ in streams])
    found = np.argsort(np.hstack([key for _, _, key in streams]), axis=1, kind="stable")
    return kinds[found], np.concatenate([index for _, index, _ in streams])[found]


def _packed(actions: Sequence[Compute]) -> Part:
    kinds = {kind: number for number, kind in enumerate((*COMPUTES, Step))}
    rows = [(kinds[type(a)], a.stage, -1 if isinstance(a, Step) else a.microbatch) for a in actions]
    kind, stage, microbatch = np.array(rows, np.int64).reshape(-1, 3).T
    return kind.copy(), stage.copy(), microbatch.copy()
