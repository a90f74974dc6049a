"""Nodes that a run on several hosts holds beside the one that carries it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from backend.runs.attempts.fence import Fence


@dataclass(frozen=True, slots=True)
class Summons:
    """Where a node that was reserved for an attempt reports, and what shows that it was asked."""

    run_id: int
    attempt: int
    address: str
    port: int
    secret: str


class ReservationStore(Protocol):
    """A claim reserves all nodes of a run or none (`RunStore.claim`)."""

    def summon(self, fence: Fence, address: str, port: int, secret: str) -> None:
        """Tell the reserved nodes where to report. Raises `LeaseLost`."""
        ...

    def summons(self, node: str) -> Summons | None:
        """What `node` is asked to, while the run is live."""
        ...

    def held(self) -> Sequence[tuple[str, int]]:
        """(node, run) of the reserved nodes of live runs."""
        ...

    def answered(self, summons: Summons, node: str) -> bool:
        """`node` takes its share; False where it did before."""
        ...
