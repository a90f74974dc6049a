"""Torch's compute-only CSV, both ways: one row per rank, cells such as 0F0, 1I2, 1W2, 0B3. A
pair that torch overlaps, (0F3;3B1)OVERLAP_F_B, is read in turn, as its runtime computes it.

The form of `torch.distributed.pipelining` 2.13 (`_dump_csv`, `_load_csv` with
format="compute_only"). It is one batch of one pipeline: it has no versions, updates, replicas
or pipelines, and its runtime adds the messages.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from backend.errors import InvalidInput
from backend.pipeline.actions import Action, Compute, Step
from backend.pipeline.chunk_placement import V_CHUNKS, Placement, holder
from backend.pipeline.kept_order import cells, computed
from backend.pipeline.lower import complete
from backend.pipeline.order import Order
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape

PAIR_OPENS, PAIR_CLOSES = "(", ")OVERLAP_F_B"


def write_csv(program: Program) -> str:
    """The rows of a program of one batch.

    Raises `InvalidInput` with what torch cannot say: several batches, updates without a
    flush, replicas, pipelines, recomputation.
    """
    shape = program.shape
    if not schedule(program.schedule).flushes or shape.num_microbatches != shape.batch:
        batches = shape.num_microbatches // shape.batch
        raise InvalidInput(
            f"torch's CSV is one batch with a flush, not {batches} batches of {program.schedule!r}",
            advice="Lower a flush schedule with as many microbatches as a batch has.",
        )
    if max(shape.replicas) > 1 or shape.num_pipelines > 1 or shape.recompute:
        raise InvalidInput(
            f"torch's CSV has no replicas, pipelines or recomputation, the shape has "
            f"{shape.replicas} replicas and {shape.num_pipelines} pipelines",
            advice="Export one straight pipeline.",
        )
    return write_rows(program.ranks)


def write_rows(ranks: Iterable[Iterable[Action]]) -> str:
    """A row per rank: its forwards and backwards, without what torch adds."""
    out = io.StringIO()
    writer = csv.writer(out)
    for actions in ranks:
        writer.writerow(cells(actions))
    return out.getvalue()


def read_csv(text: str) -> Program:
    """The program of one batch in torch's order, called "custom": versions, messages and the
    steps at the end are added. It is not yet verified. Empty cells mean nothing.

    Raises `InvalidInput` naming the row and the cell.
    """
    rows = [tuple(_cells(number, row)) for number, row in enumerate(_rows(text), 1)]
    if not any(rows):
        raise InvalidInput("the CSV has no actions", advice="Cells look like 0F0 or 1W2.")
    return in_order(rows)


def in_order(rows: Sequence[Sequence[Compute]]) -> Program:
    """The program of one batch in which each rank computes a row, as `read_csv` gives it. Raises
    `InvalidInput` where stages do not lie as a placement has them, or one is missing."""
    shape = _shape(rows)
    order = Order.of(
        [
            (*computes, *(Step(stage) for stage in coordinates.stages))
            for computes, coordinates in zip(rows, shape.coordinates, strict=True)
        ]
    )
    return complete(schedule("custom"), shape, order)


def _rows(text: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as fault:
        raise InvalidInput(f"this is not CSV: {fault}") from None


def _cells(number: int, row: Sequence[str]) -> Iterator[Compute]:
    for part in (part for cell in row for part in _parts(cell.strip())):
        found = computed(part)
        if found is None:
            raise InvalidInput(
                f"row {number}: {part!r} is not a computation",
                advice="Export with format='compute_only': cells look like 0F0, 1I2, 1W2 or 0B3.",
            )
        yield found


def _parts(cell: str) -> list[str]:
    """Those of a pair; the cell itself, which may be empty."""
    if cell.startswith(PAIR_OPENS) and cell.endswith(PAIR_CLOSES):
        inner = cell.removeprefix(PAIR_OPENS).removesuffix(PAIR_CLOSES)
        return [part.strip() for part in inner.split(";")]
    return [cell] if cell else []


def _shape(rows: Sequence[Sequence[Compute]]) -> Shape:
    """As many pipeline ranks as rows; the stages go round them, or there and back (a V)."""
    places = [(a.stage, rank) for rank, row in enumerate(rows) for a in row]
    chunks = max(stage for stage, _ in places) // len(rows) + 1
    is_v = chunks == V_CHUNKS and not _astray(places, Placement.V, len(rows))
    round_robin = len(rows) == 1 or not is_v
    placement = Placement.ROUND_ROBIN if round_robin else Placement.V
    for stage, rank in _astray(places, placement, len(rows)):
        raise InvalidInput(
            f"row {rank + 1} runs stage {stage}, which belongs on row "
            f"{holder(placement, stage, len(rows)) + 1}",
            advice="Stages go round the ranks, or two of each there and back, as a V.",
        )
    microbatches = 1 + max(a.microbatch for row in rows for a in row if not isinstance(a, Step))
    if max(chunks, microbatches) > len(places):
        raise InvalidInput(
            f"{len(places)} computations cannot be those of {chunks * len(rows)} stages and "
            f"{microbatches} microbatches",
            advice="Every microbatch passes every stage: count both from 0 without a gap.",
        )
    return Shape((1,) * len(rows), microbatches, microbatches, chunks, placement=placement)


def _astray(
    places: Sequence[tuple[int, int]], placement: Placement, size: int
) -> list[tuple[int, int]]:
    """The (stage, row) that are not where `placement` has them."""
    return [(stage, rank) for stage, rank in places if holder(placement, stage, size) != rank]
