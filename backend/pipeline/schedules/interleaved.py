"""Interleaved 1F1B: a pipeline rank holds several chunks; p microbatches pass one, then the next.

2 pipeline ranks, 2 chunks, 4 microbatches; pipeline rank 1 holds stages 1 and 3:

1F0 1F1 3F0 | 3B0 3F1 | 3B1 1F2 | 1B0 1F3 | 1B1 3F2 | 3B2 3F3 | 3B3 | 1B2 | 1B3
"""

from collections.abc import Iterator, Sequence

from backend.errors import InvalidInput
from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape


def warm_up(at: Depth) -> int:
    """Forwards of all chunks: one more than 2 (p-1-s) + (v-1) p, the warm-up of Narayanan et
    al., SC 2021. One chunk makes it plain 1F1B."""
    if at.chunks == 1:
        return at.in_flight
    return 2 * (at.pipeline_size - 1 - at.pipeline_rank) + (at.chunks - 1) * at.pipeline_size + 1


def in_turns(stages: Sequence[int], batch: Sequence[int], size: int) -> Iterator[tuple[int, int]]:
    """(stage, microbatch): `size` microbatches through one chunk after the other, then the
    next `size` of them."""
    for first in range(0, len(batch), size):
        for stage in stages:
            yield from ((stage, microbatch) for microbatch in batch[first : first + size])


def alike_replicas(shape: Shape) -> None:
    """With several chunks pipeline ranks must have equally many replicas."""
    if shape.chunks > 1 and len(set(shape.replicas)) > 1:
        raise InvalidInput(
            f"interleaving needs as many replicas at each pipeline rank, not {shape.replicas}",
            advice="Use the same number of replicas everywhere, or one chunk.",
        )


def even_shares(shape: Shape) -> None:
    """With several chunks every replica must also get as many microbatches of a batch."""
    alike_replicas(shape)
    replicas = shape.replicas[0]
    if shape.chunks > 1 and shape.batch % replicas:
        raise InvalidInput(
            f"{replicas} replicas cannot share batches of {shape.batch} microbatches evenly",
            advice=f"Use batches of {-(-shape.batch // replicas) * replicas} microbatches.",
        )


def whole_rounds(shape: Shape) -> None:
    """With several chunks every replica must get whole rounds of p microbatches of a batch."""
    alike_replicas(shape)
    unit = shape.pipeline_size * shape.replicas[0]
    if shape.chunks > 1 and shape.batch % unit:
        raise InvalidInput(
            f"interleaving takes {shape.pipeline_size} pipeline ranks x {shape.replicas[0]} "
            f"replicas = {unit} microbatches at a time, and {shape.batch} are not a multiple",
            advice=f"Use batches of {-(-shape.batch // unit) * unit} microbatches.",
        )


INTERLEAVED = Schedule(
    name="interleaved",
    title="Interleaved 1F1B",
    source="Narayanan et al., SC 2021, arXiv 2104.04473, section 2.2.2",
    warm_up=warm_up,
    chunked=True,
    admits=whole_rounds,
)
