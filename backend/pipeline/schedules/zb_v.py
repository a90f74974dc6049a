"""ZB-V: zero bubble at the memory of 1F1B, two chunks of each rank placed as a V.

Pipeline rank 0 of 2, chunks 0 and 1 (stages 0 and 3), 4 microbatches:

    0F0 0F1 0F2 | 1F0 1I0 1W0 | 1F1 1I1 1W1 | 0F3 0I0 0W0 1F2 1I2 1W2 | 0I1 0W1 1F3 1I3 1W3
    0I2 0W2 0I3 0W3

Where F = I = W no rank waits from 2 p - 1 microbatches on; each that lacks costs two of them.
Where they differ it waits: its profile decides (tests/contract/test_schedule_oracles.py).
"""

from collections.abc import Iterator

from backend.pipeline.kinds import Kind
from backend.pipeline.schedules.interleaved import even_shares
from backend.pipeline.schedules.v import v_schedule

F, B, W = Kind.FORWARD, Kind.BACKWARD_INPUT, Kind.BACKWARD_WEIGHT
Part = tuple[Kind, int]
"""What is computed of which chunk; of each the microbatches come in their order."""
UP = ((F, 1), (B, 1), (W, 1))
DOWN = ((B, 0), (W, 0))


def order(
    pipeline_rank: int, size: int, chunks: int, microbatches: int
) -> Iterator[tuple[Kind, int, int]]:
    """As torch 2.13 has it (`ScheduleZBVZeroBubble`): made for 2 p - 1 microbatches or more, those
    beyond the batch are left out."""
    count = max(microbatches, 2 * size - 1)
    for kind, chunk, index in numbered(_parts(pipeline_rank, size, count)):
        if index < microbatches:
            yield kind, chunk, index


def _parts(rank: int, size: int, count: int) -> Iterator[Part]:
    after = size - rank
    ahead = 2 * after - 1 + rank
    yield from [(F, 0)] * (2 * after - 1)
    yield from ((F, 1), (F, 0)) * rank
    yield from UP * after
    for turn in range(count - size):
        if ahead + turn < count:
            yield F, 0
        yield from (*DOWN, *UP)
    yield from ((B, 0), (B, 1)) * rank
    yield from DOWN * after
    yield from [(W, 1)] * rank
    yield from [(W, 0)] * rank


def numbered(parts: Iterator[Part]) -> Iterator[tuple[Kind, int, int]]:
    """Each part with the microbatch that it is of."""
    done: dict[Part, int] = {}
    for kind, chunk in parts:
        index = done.get((kind, chunk), 0)
        done[kind, chunk] = index + 1
        yield kind, chunk, index


ZB_V = v_schedule(
    name="zb-v",
    title="Zero bubble V",
    source="Qi et al., ICLR 2024, arXiv 2401.10241, section 6",
    batch_order=order,
    admits=even_shares,
)
