"""Orders of a whole batch that no warm-up and delay say: what a rank of several chunks computes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from backend.pipeline.kinds import Ints, Is, Kind
from backend.pipeline.schedules.depth import Depth

BatchOrder = Callable[[int, int, int, int], Iterable[tuple[Kind, int, int]]]
"""(pipeline rank, pipeline ranks, chunks, microbatches) -> (kind, chunk, microbatch), first to
last, of one rank and one batch, without the steps."""
KEPT = 256
"""Orders that are remembered: planners ask for the same ones again."""


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """One rank's batch, its steps at the end; of a step `microbatch` means nothing.

    held      most forwards of all chunks whose (weights') backward is still to come
    deferred  most backwards whose inputs' half has run and whose weights' half has not
    """

    kind: Ints
    chunk: Ints
    microbatch: Ints
    held: int
    deferred: int


@lru_cache(KEPT)
def columns(
    order: BatchOrder, pipeline_rank: int, size: int, chunks: int, microbatches: int
) -> BatchColumns:
    """The batch of `microbatches` at a pipeline rank under `order`."""
    found = np.array(list(order(pipeline_rank, size, chunks, microbatches)), np.int64)
    kind, chunk, microbatch = found.reshape(-1, 3).T
    learns = Is.LEARNING[kind].astype(np.int64)
    held = np.cumsum((kind == Kind.FORWARD) - learns)
    halves = (kind == Kind.BACKWARD_INPUT).astype(np.int64) - (kind == Kind.BACKWARD_WEIGHT)
    steps = np.full(chunks, Kind.STEP)
    return BatchColumns(
        np.concatenate((kind, steps)),
        np.concatenate((chunk, np.arange(chunks))),
        np.concatenate((microbatch, np.zeros(chunks, np.int64))),
        int(held.max(initial=0)),
        int(np.cumsum(halves).max(initial=0)),
    )


def columns_at(order: BatchOrder, at: Depth) -> BatchColumns:
    """Those of a batch at `at`."""
    return columns(order, at.pipeline_rank, at.pipeline_size, at.chunks, at.batch_here)
