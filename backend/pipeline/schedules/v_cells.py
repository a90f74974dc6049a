"""A V by its cells: the first microbatch's places in time, the others each 6 cells later.

A cell is a chunk's F, I or W, taken as equal. F0, F1, I1 and I0 of microbatch k stand in their
cells + 6 k, and a W in the first free cell behind its I, first come, first served:

    V-Half, pipeline rank 0 of 2   F0 . . . F1 . F0 I1 W1 . F1 . F0 I1 W1 I0 ...
"""

from collections import deque
from collections.abc import Iterator

from backend.pipeline.kinds import Kind

SOURCE = "Qi et al., NeurIPS 2024, arXiv 2405.15362, section 3"
PERIOD = 6
"""F, I and W of two chunks."""
Cells = tuple[int, int, int, int]
"""Those of F0, F1, I1 and I0 of the first microbatch."""
PARTS = (
    (Kind.FORWARD, 0),
    (Kind.FORWARD, 1),
    (Kind.BACKWARD_INPUT, 1),
    (Kind.BACKWARD_INPUT, 0),
)


def in_cells(cells: Cells, microbatches: int) -> Iterator[tuple[Kind, int, int]]:
    """(kind, chunk, microbatch) of a batch, in the order of time. No two may meet in a cell."""
    taken = {
        cell + PERIOD * k: (kind, chunk, k)
        for cell, (kind, chunk) in zip(cells, PARTS, strict=True)
        for k in range(microbatches)
    }
    assert len(taken) == len(PARTS) * microbatches, "two parts in a cell"
    waiting: deque[tuple[int, int]] = deque()
    for cell in range(max(taken) + 1):
        if cell in taken:
            kind, chunk, k = taken[cell]
            yield kind, chunk, k
            if kind is Kind.BACKWARD_INPUT:
                waiting.append((chunk, k))
        elif waiting:
            yield (Kind.BACKWARD_WEIGHT, *waiting.popleft())
    yield from ((Kind.BACKWARD_WEIGHT, chunk, k) for chunk, k in waiting)
