"""The seam between pipelines with weights of their own: what each of them does after an update."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from workers.runtime.messages.peers import Peers


class Exchange(Protocol):
    """The rule of one stage, whose weights are always given in the same order.

    state   what it keeps beside the weights, by kind, in their order: checkpoints have it
    sent    bytes that this pipeline has sent to the others, before headers
    common  the weights that all pipelines have together, which are evaluated and saved; None where
            there are none but each one's own
    """

    @property
    def state(self) -> dict[str, list[Tensor]]: ...

    @property
    def common(self) -> list[Tensor] | None: ...

    @property
    def sent(self) -> int: ...

    def begin(self, weights: Sequence[Tensor]) -> None:
        """All pipelines begin with these."""

    def load_state(self, state: dict[str, list[Tensor]]) -> None:
        """Go on from what `state` gave."""

    def exchange(self, weights: Sequence[Tensor], updates: int, peers: Peers) -> None:
        """Change `weights`, which are newly made by the update of this number (from 1), in place,
        and what is kept."""
