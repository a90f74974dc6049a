"""The order of every rank as columns, from what a schedule says of it.

warm-up 3           F0 F1 F2 | B0 F3 | B1 F4 | B2 F5 | B3 | B4 | B5
warm-up 3, delay 1  F0 F1 F2 | I0 F3 | I1 W0 F4 | I2 W1 F5 | I3 W2 | I4 W3 | I5 W4 W5

Backwards count from 0, and round j is B_j, W_(j - delay), the steps, F_(j + warm-up): sorting by
the round and the place in it gives the order. A step follows the last backward (or weights'
half) of what it applies. A schedule that flushes begins anew after each.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from backend.pipeline.actions import Compute
from backend.pipeline.chunk_placement import stage_at
from backend.pipeline.kinds import Ints, Kind
from backend.pipeline.order import Order
from backend.pipeline.placement import microbatches_at
from backend.pipeline.rows import Rows
from backend.pipeline.schedules.batch_order import BatchOrder, columns_at
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import RankCoordinates, Shape

Part = tuple[Ints, Ints, Ints]
"""Kinds, stages and microbatches of one rank."""


def orders(rule: Schedule, shape: Shape) -> Order:
    """What the ranks compute under `rule`, first to last."""
    parts: dict[int, Part] = {}
    alike: defaultdict[tuple[int, int], list[RankCoordinates]] = defaultdict(list)
    for coordinates in shape.coordinates:
        if rule.order is not None:
            parts[coordinates.rank] = _packed(rule.order(coordinates, shape))
        elif whole := rule.order_of_batch(coordinates):
            parts[coordinates.rank] = _batches(whole, coordinates)
        else:
            is_even = not rule.batched or shape.batch % coordinates.replicas_here == 0
            own = -1 if is_even else coordinates.replica
            if coordinates.shares_here:
                own = -2 - coordinates.rank
            alike[coordinates.replicas_here, own].append(coordinates)
    for ranks in alike.values():
        found = _played(rule, ranks)
        parts |= {coordinates.rank: part for coordinates, part in zip(ranks, found, strict=True)}
    kinds, stages, microbatches = zip(
        *(parts[coordinates.rank] for coordinates in shape.coordinates), strict=True
    )
    lengths = [len(kind) for kind in kinds]
    return Order(
        bounds=np.cumsum([0, *lengths]),
        rank=np.repeat(np.arange(shape.num_ranks), lengths),
        kind=np.concatenate(kinds),
        stage=np.concatenate(stages),
        microbatch=np.concatenate(microbatches),
    )


def _packed(actions: Iterable[Compute]) -> Part:
    rows = Rows.of(actions)
    return rows.kind, rows.stage, rows.microbatch


def _batches(order: BatchOrder, coordinates: RankCoordinates) -> Part:
    """The order of one batch again and again."""
    one, count, shape = columns_at(order, coordinates), coordinates.num_batches, coordinates.shape
    held = stage_at(shape.placement, one.chunk, coordinates.pipeline_rank, shape.pipeline_size)
    starts = np.repeat(np.arange(count) * coordinates.batch_here, len(held))
    kind, index = np.tile(one.kind, count), starts + np.tile(one.microbatch, count)
    (microbatch,) = microbatches_at([coordinates], index[None])
    return kind, np.tile(held, count), np.where(kind == Kind.STEP, -1, microbatch)


def _played(rule: Schedule, ranks: Sequence[RankCoordinates]) -> Iterator[Part]:
    """The orders of ranks that get as many microbatches of each update."""
    shape, sizes = ranks[0].shape, _sizes(rule, ranks[0])
    if rule.flushes:
        lengths = sizes.tolist()
        patterns = {size: _pattern(rule, ranks, np.array([size])) for size in set(lengths)}
    else:
        lengths = [int(sizes.sum())]
        patterns = {lengths[0]: _pattern(rule, ranks, sizes)}
    taken = [patterns[length] for length in lengths]
    kind = np.concatenate([kind for kind, _ in taken], axis=1)
    index = np.concatenate([index for _, index in taken], axis=1)
    starts = np.cumsum([0, *lengths[:-1]])
    start = np.repeat(starts, [kind.shape[1] for kind, _ in taken])
    chunk, which = _turns(shape, kind, index)
    stage = chunk * shape.pipeline_size + np.array(
        [[coordinates.pipeline_rank] for coordinates in ranks]
    )
    microbatch = np.where(kind == Kind.STEP, -1, microbatches_at(ranks, start + which))
    return zip(kind, stage, microbatch, strict=True)


def _sizes(rule: Schedule, coordinates: RankCoordinates) -> Ints:
    """The microbatches of the rank that each update applies."""
    shape, here = coordinates.shape, coordinates.replicas_here
    if not rule.batched:
        return np.ones(coordinates.segment_here, np.int64)
    if coordinates.shares_here:
        return np.array(list(map(len, coordinates.batches)))
    ends = np.arange(0, shape.microbatches_per_pipeline + 1, shape.batch)
    return np.diff((ends - coordinates.replica + here - 1) // here)


def _pattern(rule: Schedule, ranks: Sequence[RankCoordinates], sizes: Ints) -> tuple[Ints, Ints]:
    """(kind, the how-manieth of its kind) over updates of so many microbatches, and of a step
    its chunk; a line per rank."""
    chunks = ranks[0].chunks
    every = np.arange(sizes.sum() * chunks)
    last = np.repeat(np.cumsum(sizes) * chunks - 1, chunks)
    warm_up = np.array([[rule.warm_up(coordinates)] for coordinates in ranks])
    delay = np.array([[rule.delay(coordinates) if rule.delay else 0] for coordinates in ranks])
    streams: list[tuple[int, Ints, Ints]] = [
        (Kind.FORWARD, every, np.maximum(every - warm_up, -1) * 4 + 3),
        (Kind.BACKWARD_INPUT if rule.delay else Kind.BACKWARD, every, every * 4 + 0 * delay),
        (Kind.STEP, np.arange(len(last)) % chunks, (last + delay) * 4 + 2),
    ]
    if rule.delay:
        streams.append((Kind.BACKWARD_WEIGHT, every, (every + delay) * 4 + 1))
    kinds = np.repeat([kind for kind, _, _ in streams], [len(index) for _, index, _ in streams])
    found = np.argsort(np.hstack([key for _, _, key in streams]), axis=1, kind="stable")
    return kinds[found], np.concatenate([index for _, index, _ in streams])[found]


def _turns(shape: Shape, kind: Ints, index: Ints) -> tuple[Ints, Ints]:
    """The chunk and the microbatch of the index-th forward, or backward, of a batch: those of
    `interleaved.in_turns`; of a step its chunk, which is its index."""
    step = kind == Kind.STEP
    if shape.chunks == 1:
        return np.zeros_like(index), np.where(step, 0, index)
    size, chunks = shape.pipeline_size, shape.chunks
    turn = index // size % chunks
    chunk = np.where(kind == Kind.FORWARD, turn, chunks - 1 - turn)
    which = index // (size * chunks) * size + index % size
    return np.where(step, index, chunk), np.where(step, 0, which)
