"""Who sits where, for whole columns at once; the same rules as `Shape`."""

import numpy as np

from backend.pipeline.columnar.table import Ints
from backend.pipeline.shape import Seat, Shape


def rank_of(shape: Shape, stage: Ints, microbatch: Ints) -> Ints:
    """`Shape.rank_of` of every row."""
    position = stage % shape.positions
    replicas = np.asarray(shape.replicas)[position]
    first = np.asarray(shape.first_ranks)[position]
    if shape.lanes > 1:
        first = first + microbatch // shape.batch % shape.lanes * shape.num_devices
    return np.asarray(first + turn_of(shape, microbatch) % replicas)


def turn_of(shape: Shape, microbatch: Ints) -> Ints:
    """`Shape.turn_of` of every row."""
    if shape.lanes == 1:
        return microbatch
    whole, place = microbatch // (shape.batch * shape.lanes), microbatch % shape.batch
    return np.asarray(whole * shape.batch + place)


def microbatches_of(seat: Seat) -> Ints:
    """`Seat.microbatches`."""
    shape = seat.shape
    turns = np.arange(seat.replica, shape.lane_microbatches, seat.replicas_here)
    batch, place = np.divmod(turns, shape.batch)
    return np.asarray((batch * shape.lanes + seat.lane) * shape.batch + place)
