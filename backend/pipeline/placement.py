"""Which rank runs what, for whole columns at once; the same rules as `Shape`."""

from collections.abc import Sequence

import numpy as np

from backend.pipeline.kinds import Ints
from backend.pipeline.shape import Seat, Shape


def rank_of(shape: Shape, stage: Ints, microbatch: Ints) -> Ints:
    """`Shape.rank_of` of every row."""
    position = stage % shape.positions
    replicas = np.asarray(shape.replicas)[position]
    first = np.asarray(shape.first_ranks)[position]
    if shape.lanes > 1:
        first = first + microbatch // shape.batch % shape.lanes * shape.num_devices
    return np.asarray(first + turn_of(shape, microbatch) % replicas)


def position_of(shape: Shape, rank: Ints) -> Ints:
    """The position of every rank in the pipeline."""
    device = rank % shape.num_devices
    return np.searchsorted(np.asarray(shape.first_ranks), device, side="right") - 1


def turn_of(shape: Shape, microbatch: Ints) -> Ints:
    """`Shape.turn_of` of every row."""
    if shape.lanes == 1:
        return microbatch
    whole, place = microbatch // (shape.batch * shape.lanes), microbatch % shape.batch
    return np.asarray(whole * shape.batch + place)


def microbatches_at(seats: Sequence[Seat], index: Ints) -> Ints:
    """`Seat.microbatches[index]`, with a line of `index` for each of the seats, which have as
    many replicas each."""
    shape = seats[0].shape
    lines = len(seats), *[1] * (index.ndim - 1)
    replica = np.array([seat.replica for seat in seats]).reshape(lines)
    turn = np.asarray(index * seats[0].replicas_here + replica)
    if shape.lanes == 1:
        return turn
    lane = np.array([seat.lane for seat in seats]).reshape(lines)
    batch, place = np.divmod(turn, shape.batch)
    return np.asarray((batch * shape.lanes + lane) * shape.batch + place)
