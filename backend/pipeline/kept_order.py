"""Orders that are kept with a plan: what each rank computes in one batch, as text.

    0F0 0F1 0I0 0W0 0I1 0W1      rank 0 of two stages and two microbatches
    1F0 1B0 1F1 1B1              rank 1

A row per rank, a cell per compute: its stage, its kind and its microbatch, as torch's CSV has them.
The update at the end is not written. A training repeats the order, batch after batch.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.pipeline.actions import (
    Action,
    Backward,
    BackwardInput,
    BackwardWeight,
    Forward,
)
from backend.pipeline.kinds import Kind, kind_of

KeptOrder = tuple[str, ...]
"""A row per pipeline rank; () = the schedule's rule says the order."""
MOST_CELLS = 50_000
"""Computes of an order that is kept (a bound of ours: they are stored with every plan and run)."""
Computed = Forward | Backward | BackwardInput | BackwardWeight
"""What a cell says: a step or a recomputation is none."""
_CELL = re.compile(r"([0-9]{1,18})([FBIW])([0-9]{1,18})")
_KINDS: dict[str, type[Computed]] = {
    "F": Forward,
    "B": Backward,
    "I": BackwardInput,
    "W": BackwardWeight,
}
_LETTERS = {kind: letter for letter, kind in _KINDS.items()}


def computed(cell: str) -> Computed | None:
    """What a cell says; None where it says nothing."""
    found = _CELL.fullmatch(cell)
    return _KINDS[found[2]](int(found[1]), int(found[3])) if found else None


def cells(actions: Iterable[Action]) -> Iterator[str]:
    """The cells of the forwards and backwards among `actions`."""
    for one in actions:
        if isinstance(one, Computed):
            yield f"{one.stage}{_LETTERS[type(one)]}{one.microbatch}"


def kept(ranks: Iterable[Iterable[Action]]) -> KeptOrder:
    """The order of a program of one batch."""
    return tuple(" ".join(cells(actions)) for actions in ranks)


def splits(order: KeptOrder) -> bool:
    """Whether some backward is in two halves."""
    return any("I" in row for row in order)


@dataclass(frozen=True, slots=True)
class KeptBatch:
    """What a schedule's `BatchOrder` gives, from a kept order."""

    order: KeptOrder

    def __call__(
        self, pipeline_rank: int, size: int, chunks: int, microbatches: int
    ) -> Iterator[tuple[Kind, int, int]]:
        """Raises `InvalidInput` naming the rank and the cell."""
        for cell in self.order[pipeline_rank].split():
            found = computed(cell)
            if found is None:
                raise InvalidInput(
                    f"rank {pipeline_rank} of the kept order: {cell[:40]!r} is not a computation",
                    advice="Cells look like 0F0, 1I2, 1W2 or 0B3.",
                )
            if found.microbatch >= microbatches or found.stage >= size * chunks:
                raise InvalidInput(
                    f"rank {pipeline_rank} of the kept order computes {cell[:40]}, and the plan "
                    f"has {size * chunks} stages and {microbatches} microbatches per update",
                    advice="Use as many microbatches per update as the order was made for.",
                )
            yield kind_of(found), found.stage // size, found.microbatch
