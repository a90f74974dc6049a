"""Which rank runs what, for whole columns at once; the same rules as `Shape`."""

from collections.abc import Sequence

import numpy as np

from backend.pipeline.chunk_placement import holder
from backend.pipeline.kinds import Ints
from backend.pipeline.shape import RankCoordinates, Shape


def rank_of(shape: Shape, stage: Ints, microbatch: Ints) -> Ints:
    """`Shape.rank_of` of every row."""
    pipeline_rank = holder_of(shape, stage)
    rounds = np.asarray(shape.rounds)[pipeline_rank]
    first = np.asarray(shape.first_ranks)[pipeline_rank]
    if shape.num_pipelines > 1:
        first = first + microbatch // shape.batch % shape.num_pipelines * shape.num_devices
    place = turn_of(shape, microbatch) % rounds
    if shape.shares:
        starts = np.cumsum([0, *shape.rounds[:-1]])
        place = np.concatenate(shape.patterns)[starts[pipeline_rank] + place]
    return np.asarray(first + place)


def holder_of(shape: Shape, stage: Ints) -> Ints:
    """`Shape.pipeline_rank_of` of every row."""
    return np.asarray(holder(shape.placement, stage, shape.pipeline_size))


def pipeline_rank_of(shape: Shape, rank: Ints) -> Ints:
    """The pipeline rank of every rank in the pipeline."""
    device = rank % shape.num_devices
    return np.searchsorted(np.asarray(shape.first_ranks), device, side="right") - 1


def turn_of(shape: Shape, microbatch: Ints) -> Ints:
    """`Shape.turn_of` of every row."""
    if shape.num_pipelines == 1:
        return microbatch
    whole, place = microbatch // (shape.batch * shape.num_pipelines), microbatch % shape.batch
    return np.asarray(whole * shape.batch + place)


def microbatches_at(ranks: Sequence[RankCoordinates], index: Ints) -> Ints:
    """`RankCoordinates.microbatches[index]`, with a line of `index` for each of the ranks, which
    have as many replicas each."""
    shape = ranks[0].shape
    if ranks[0].shares_here:
        own = (np.asarray(coordinates.microbatches) for coordinates in ranks)
        return np.stack([taken[line] for taken, line in zip(own, index, strict=True)])
    lines = len(ranks), *[1] * (index.ndim - 1)
    replica = np.array([coordinates.replica for coordinates in ranks]).reshape(lines)
    turn = np.asarray(index * ranks[0].replicas_here + replica)
    if shape.num_pipelines == 1:
        return turn
    pipeline = np.array([coordinates.pipeline for coordinates in ranks]).reshape(lines)
    batch, place = np.divmod(turn, shape.batch)
    return np.asarray((batch * shape.num_pipelines + pipeline) * shape.batch + place)
