"""What ranks with a part each give all others: sums, and chosen numbers with their places."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from backend.planning.thresholds import PLACE_BYTES

DENSE = -1
"""In the place of a count: all values, without places."""


class Peers(Protocol):
    """Some ranks, such as those of all pipelines with equal coordinates or the replicas of a stage;
    all call the same in the same order."""

    @property
    def ranks(self) -> tuple[int, ...]: ...

    def sum(self, tensor: Tensor) -> None:
        """Put the sum over the ranks in the tensor's place."""

    def gathered(self, value: int) -> list[int]:
        """Every rank's value, in the order of `ranks`."""

    def broadcast(self, tensor: Tensor, place: int = 0) -> None:
        """Put the tensor of the rank at `place` in `ranks` in the place of everybody's."""

    @property
    def place(self) -> int:
        """Of this rank in `ranks`."""


def summed_bytes(tensors: Sequence[Tensor], members: int) -> int:
    """Bytes that each of `members` sends in a sum of these over a ring: 2 (s-1)/s of them."""
    return 2 * (members - 1) * sum(tensor.nbytes for tensor in tensors) // members


def add_sent(into: Tensor, own: Tensor, chosen: Tensor, peers: Peers) -> tuple[Tensor, int]:
    """Add to the flat `into` what all ranks send, rank by rank, so that it is equal everywhere to
    the last bit: of a rank's `own` the `chosen` numbers with their places, or all of them where
    that is no more bytes. Gives which of this rank's went, and the bytes that it sent to others."""
    count = int(chosen.sum())
    value = PLACE_BYTES + own.element_size()
    if count * value >= own.nbytes:
        count, chosen = DENSE, torch.ones_like(chosen)
    for place, number in enumerate(peers.gathered(count)):
        _receive(into, number, peers, place, own if place == peers.place else None, chosen)
    own_bytes = own.nbytes if count == DENSE else count * value
    return chosen, (len(peers.ranks) - 1) * own_bytes


def _receive(
    into: Tensor, count: int, peers: Peers, place: int, own: Tensor | None, chosen: Tensor
) -> None:
    """Add what the rank at `place` sends, `count` values or all; `own` is given where it is this
    one."""
    if count == DENSE:
        values = torch.empty_like(into) if own is None else own.clone()
        peers.broadcast(values, place)
        into += values
    elif count:
        places = torch.empty(count, dtype=torch.int32, device=into.device)
        values = into.new_empty(count)
        if own is not None:
            places, values = chosen.nonzero().flatten().int(), own[chosen]
        peers.broadcast(places, place)
        peers.broadcast(values, place)
        into.index_add_(0, places.long(), values)


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """Their numbers side by side."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def put(numbers: Tensor, tensors: Sequence[Tensor]) -> None:
    """Put what `flat` gave back into tensors of the same shapes."""
    first = 0
    for tensor in tensors:
        tensor.copy_(numbers[first : first + tensor.numel()].view_as(tensor))
        first += tensor.numel()
