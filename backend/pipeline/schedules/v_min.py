"""V-Min: about a third of 1F1B's activations, two chunks of each rank as a V.

Beware: where F, I and W differ its bubble grows with every microbatch, because its pattern is as
tight as memory allows. Where they are equal it is 4 p - 5 chunks (4 p - 3 where 3 divides p).
`v-half` has no such price.
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
    v = 2 if p % 3 == 0 else 0
    cells = i, 2 * p - i - 1, 2 * p + v + i, 4 * p + v - i - 1
    return in_cells(cells, microbatches)


V_MIN = v_schedule(
    name="v-min",
    title="V-Min",
    source=SOURCE,
    batch_order=order,
    admits=even_shares,
    warning="Under v-min each microbatch adds to the bubble where forwards and the halves of "
    "backwards take different times; v-half holds more activations and has no such price.",
)
