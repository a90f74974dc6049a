"""What replicas that compute a split layer together exchange, with gradients.

Each has its own rows (samples, or tokens) of a tensor, or its own columns (channels) of all rows.
All replicas call each function in the same order.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Counts = tuple[int, ...]
"""Of rows or of columns, what each replica has, in their order."""


class Replicas(Protocol):
    """Those of a stage; a process group of theirs."""

    @property
    def ranks(self) -> tuple[int, ...]: ...

    @property
    def place(self) -> int:
        """Of this one in `ranks`."""
        ...

    def sum(self, tensor: Tensor) -> None:
        """Put the sum over all in the tensor's place."""
        ...

    def gather(self, flat: Tensor) -> None:
        """Put every replica's own equal part into `flat`."""
        ...

    def broadcast(self, tensor: Tensor, place: int = 0) -> None:
        """Give the tensor of the one at `place` to all."""
        ...


def narrowed(tensor: Tensor, counts: Counts, place: int, dim: int) -> Tensor:
    """Along a dimension the part at `place` of so many each."""
    return tensor.narrow(dim, sum(counts[:place]), counts[place]).contiguous()


@dataclass(frozen=True, slots=True)
class Together:
    """The replicas of a stage, as one of them sees them."""

    group: Replicas

    @property
    def place(self) -> int:
        """Of this replica among them."""
        return self.group.place

    def counts(self, own: Tensor) -> Counts:
        """The rows that each brings."""
        found = torch.zeros(len(self.group.ranks), dtype=torch.int64, device=own.device)
        found[self.place] = len(own)
        self.group.gather(found)
        return tuple(map(int, found.tolist()))

    def own_rows(self, tensor: Tensor, rows: Counts) -> Tensor:
        """Of all rows this replica's."""
        return narrowed(tensor, rows, self.place, 0)

    def all_rows(self, own: Tensor, rows: Counts) -> Tensor:
        """Of each replica its rows."""
        return self.joined(own, rows, 0)

    def own_columns(self, tensor: Tensor, columns: Counts) -> Tensor:
        """Of all columns this replica's."""
        return narrowed(tensor, columns, self.place, tensor.dim() - 1)

    def all_columns(self, own: Tensor, columns: Counts) -> Tensor:
        """Of each replica its columns."""
        return self.joined(own, columns, own.dim() - 1)

    def joined(self, own: Tensor, counts: Counts, dim: int) -> Tensor:
        """The parts of all, along a dimension. They differ in size, so that each is broadcast."""
        found = []
        for place, count in enumerate(counts):
            shape = (*own.shape[:dim], count, *own.shape[dim + 1 :])
            piece = own.contiguous() if place == self.place else own.new_empty(shape)
            self.group.broadcast(piece, place)
            found.append(piece)
        return torch.cat(found, dim)

    def added(self, partial: Tensor) -> Tensor:
        """The sum of what all have."""
        total = partial.clone(memory_format=torch.contiguous_format)
        self.group.sum(total)
        return total


class GatherRows(torch.autograd.Function):
    """All rows of what each has its own of; the backward adds up partial gradients."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, together: Together, rows: Counts) -> Tensor:
        ctx.together, ctx.rows = together, rows
        return together.all_rows(own, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, partial: Tensor) -> tuple[Tensor, None, None]:
        return ctx.together.own_rows(ctx.together.added(partial), ctx.rows), None, None


class AddRows(torch.autograd.Function):
    """Own rows of the sum of partial outputs; the backward gathers all rows."""

    @staticmethod
    def forward(ctx: Any, partial: Tensor, together: Together, rows: Counts) -> Tensor:
        ctx.together, ctx.rows = together, rows
        return together.own_rows(together.added(partial), rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, own: Tensor) -> tuple[Tensor, None, None]:
        return ctx.together.all_rows(own, ctx.rows), None, None


class ToColumns(torch.autograd.Function):
    """Own columns of all rows, from all columns of own rows."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, together: Together, rows: Counts, columns: Counts) -> Tensor:
        ctx.together, ctx.rows, ctx.columns = together, rows, columns
        return together.own_columns(together.all_rows(own, rows), columns)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, own: Tensor) -> tuple[Tensor, None, None, None]:
        whole = ctx.together.all_columns(own, ctx.columns)
        return ctx.together.own_rows(whole, ctx.rows), None, None, None


class ToRows(torch.autograd.Function):
    """All columns of own rows, from own columns of all rows."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, together: Together, rows: Counts, columns: Counts) -> Tensor:
        ctx.together, ctx.rows, ctx.columns = together, rows, columns
        return together.own_rows(together.all_columns(own, columns), rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, own: Tensor) -> tuple[Tensor, None, None, None]:
        whole = ctx.together.all_rows(own, ctx.rows)
        return ctx.together.own_columns(whole, ctx.columns), None, None, None
