"""The seam between pipelines with weights of their own: what each of them does after an update."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor


class Peers(Protocol):
    """The ranks of all pipelines with equal coordinates; all call the same in the same order."""

    @property
    def ranks(self) -> tuple[int, ...]: ...

    def sum(self, tensor: Tensor) -> None:
        """Put the sum over the pipelines in the tensor's place."""

    def gathered(self, value: int) -> list[int]:
        """Every pipeline's value, in the order of `ranks`."""

    def broadcast(self, tensor: Tensor, place: int = 0) -> None:
        """Put the tensor of the pipeline at `place` in `ranks` in the place of everybody's."""

    @property
    def place(self) -> int:
        """Of this rank in `ranks`."""


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


def summed_bytes(tensors: Sequence[Tensor], members: int) -> int:
    """Bytes that each of `members` sends in a sum of these over a ring: 2 (s-1)/s of them."""
    return 2 * (members - 1) * sum(tensor.nbytes for tensor in tensors) // members
