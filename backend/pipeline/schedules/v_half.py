"""V-Half: half of 1F1B's activations and less of its bubble, two chunks of each rank as a V.

Every rank holds p + 2 chunks at most (p + 1 where p is odd), of which 1F1B's first rank holds
2 p of the same size. Where F = I = W its bubble is 7 p / 2 - 2 of them (7 (p - 1) / 2 where p is
odd), beside 6 (p - 1), and it hardly grows where they differ.
"""

from collections.abc import Iterator

from backend.pipeline.kinds import Kind
from backend.pipeline.schedules.interleaved import even_shares
from backend.pipeline.schedules.v import v_schedule
from backend.pipeline.schedules.v_cells import SOURCE, in_cells


def order(
    pipeline_rank: int, size: int, chunks: int, microbatches: int
) -> Iterator[tuple[Kind, int, int]]:
    """The stable pattern of sail-sg's `zbv_greedy.py`, without its last pass that moves parts."""
    i, p = pipeline_rank, size
    v = 3 if p % 2 == 0 else 0
    cells = 2 * i, 3 * p - i - 2, 3 * p + v + 2 * i - 1, 6 * p + v - i - 2
    return in_cells(cells, microbatches)


V_HALF = v_schedule(
    name="v-half",
    title="V-Half",
    source=SOURCE,
    batch_order=order,
    admits=even_shares,
)
