"""In which precision a training keeps its weights and its optimizer's state, by name.

What bytes a weight takes is said here alone: memory, messages, tables and ranks ask this table.
"""

from dataclasses import dataclass
from typing import Literal

from backend.errors import InvalidInput

StatePrecision = Literal[
    "float32",
    "float32-state16",
    "bfloat16-masters",
    "bfloat16-masters-state16",
    "bfloat16-state32",
    "bfloat16",
]
"""The names, for forms and stored documents; the first is the default."""

FULL, HALF = 4, 2
"""Bytes of a float32 and of a bfloat16."""


@dataclass(frozen=True, slots=True)
class StatePrecisionKind:
    """Bytes of each number that is kept.

    weight  of a version, of a gradient, and of both in messages
    master  of the weight that the optimizer updates and every version is rounded from; 0 = there
            is none, and versions are rounded from each other
    state   of each value that the optimizer keeps of a weight
    """

    title: str
    weight: int
    master: int
    state: int

    @property
    def is_rounded(self) -> bool:
        """Whether an update rounds something that it leaves behind."""
        return HALF in (self.weight, self.state)

    @property
    def share(self) -> float:
        """Bytes of a weight over those of a float32."""
        return self.weight / FULL

    @property
    def finest(self) -> float:
        """Bytes of what is known best of a weight, its master where there is one, over those of
        the weight. The reference of parallel pipelines is kept like that."""
        return (self.master or self.weight) / self.weight

    def optimizer(self, values: int) -> float:
        """Bytes of the master and of so many values of the optimizer over those of the weight."""
        return (self.master + values * self.state) / self.weight


STATE_PRECISIONS: dict[StatePrecision, StatePrecisionKind] = {
    "float32": StatePrecisionKind("all float32", FULL, 0, FULL),
    "float32-state16": StatePrecisionKind("float32, bfloat16 state", FULL, 0, HALF),
    "bfloat16-masters": StatePrecisionKind("bfloat16, float32 masters", HALF, FULL, FULL),
    "bfloat16-masters-state16": StatePrecisionKind("all bfloat16 but masters", HALF, FULL, HALF),
    "bfloat16-state32": StatePrecisionKind("bfloat16, float32 state", HALF, 0, FULL),
    "bfloat16": StatePrecisionKind("all bfloat16", HALF, 0, HALF),
}


def state_precision_named(name: str) -> StatePrecisionKind:
    """That called `name`; raises `InvalidInput` with the names that there are."""
    for known, found in STATE_PRECISIONS.items():
        if known == name:
            return found
    raise InvalidInput(
        f"no precision of state {name!r}", f"Choose one of: {', '.join(STATE_PRECISIONS)}."
    )
