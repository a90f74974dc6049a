"""Who sits where, for whole columns at once; the same rules as `Shape`."""

import numpy as np

from backend.pipeline.columnar.table import Ints
from backend.pipeline.shape import Seat, Shape


def rank_of(shape: Shape, stage: Ints, microbatch: Ints) -> Ints:
    """`Shape.rank_of` of every row."""
    position = stage % shape.positions
    replicas = np.asarray(shape.replicas)[position]
    first = np.asarray(shape.first_ranks)[position]
    if shape.lanes == 1:
        return np.asarray(first + microbatch % replicas)
    size = shape.batch
    lane = microbatch // size % shape.lanes
    turn = microbatch // (size * shape.lanes) * size + microbatch % size
    return np.asarray(lane * shape.num_devices + first + turn % replicas)


def microbatches_of(seat: Seat) -> Ints:
    """`Seat.microbatches`."""
    shape = seat.shape
    turns = np.arange(seat.replica, shape.lane_microbatches, seat.replicas_here)
    batch, place = np.divmod(turns, shape.batch)
    return np.asarray((batch * shape.lanes + seat.lane) * shape.batch + place)
