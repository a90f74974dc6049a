"""What replicas that compute a split layer together exchange, with gradients.

Each has its own rows (samples, or tokens) of a tensor, or its own columns (channels) of all rows.
All replicas call each function in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
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

    def gather(self, flat: Tensor) -> None:
        """Put every replica's own equal part into `flat`."""
        ...

    def broadcast(self, tensor: Tensor, place: int = 0) -> None:
        """Give the tensor of the one at `place` to all."""
        ...

    def swap(self, flat: Tensor, given: Sequence[int], taken: Sequence[int]) -> Tensor:
        """Give each so many numbers of `flat`; what each gives, side by side."""
        ...


def narrowed(tensor: Tensor, counts: Counts, place: int, dim: int) -> Tensor:
    """Along a dimension the part at `place` of so many each. A copy: a view would keep all parts
    in memory."""
    part = tensor.narrow(dim, sum(counts[:place]), counts[place])
    return part.clone(memory_format=torch.contiguous_format)


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

    def all_rows(self, own: Tensor, rows: Counts) -> Tensor:
        """Of each replica its rows."""
        width, size = prod(own.shape[1:]), len(self.group.ranks)
        flat = own.reshape(-1).repeat(size)
        found = self.group.swap(flat, [own.numel()] * size, [count * width for count in rows])
        return found.view(sum(rows), *own.shape[1:])

    def added_rows(self, partial: Tensor, rows: Counts) -> Tensor:
        """Own rows of the sum of what all have for all rows."""
        width, own = prod(partial.shape[1:]), rows[self.place]
        given, taken = [count * width for count in rows], [own * width] * len(rows)
        found = self.group.swap(partial.reshape(-1), given, taken)
        return found.view(len(rows), own, *partial.shape[1:]).sum(0)

    def to_columns(self, own: Tensor, rows: Counts, columns: Counts) -> Tensor:
        """Own columns of all rows, from all columns of own rows."""
        mine = columns[self.place]
        flat = torch.cat([part.reshape(-1) for part in own.split_with_sizes(columns, 1)])
        given = [len(own) * count for count in columns]
        found = self.group.swap(flat, given, [count * mine for count in rows])
        return found.view(sum(rows), mine)

    def to_rows(self, own: Tensor, rows: Counts, columns: Counts) -> Tensor:
        """All columns of own rows, from own columns of all rows."""
        mine, width = rows[self.place], own.shape[1]
        taken = [mine * count for count in columns]
        found = self.group.swap(own.reshape(-1), [count * width for count in rows], taken)
        return torch.cat([part.view(mine, -1) for part in found.split_with_sizes(taken)], 1)

    def joined(self, own: Tensor, counts: Counts, dim: int) -> Tensor:
        """The slices of all, along a dimension. Each is broadcast: a swap would copy it for each of
        the others, and weights are large."""
        found = []
        for place, count in enumerate(counts):
            shape = (*own.shape[:dim], count, *own.shape[dim + 1 :])
            piece = own.contiguous() if place == self.place else own.new_empty(shape)
            self.group.broadcast(piece, place)
            found.append(piece)
        return torch.cat(found, dim)


class GatherRows(torch.autograd.Function):
    """All rows of what each has its own of; the backward adds up partial gradients."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, together: Together, rows: Counts) -> Tensor:
        ctx.together, ctx.rows = together, rows
        return together.all_rows(own, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, partial: Tensor) -> tuple[Tensor, None, None]:
        return ctx.together.added_rows(partial, ctx.rows), None, None


class AddRows(torch.autograd.Function):
    """Own rows of the sum of partial outputs; the backward gathers all rows."""

    @staticmethod
    def forward(ctx: Any, partial: Tensor, together: Together, rows: Counts) -> Tensor:
        ctx.together, ctx.rows = together, rows
        return together.added_rows(partial, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, own: Tensor) -> tuple[Tensor, None, None]:
        return ctx.together.all_rows(own, ctx.rows), None, None


class ToColumns(torch.autograd.Function):
    """Own columns of all rows, from all columns of own rows."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, together: Together, rows: Counts, columns: Counts) -> Tensor:
        ctx.together, ctx.rows, ctx.columns = together, rows, columns
        return together.to_columns(own, rows, columns)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, own: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.together.to_rows(own, ctx.rows, ctx.columns), None, None, None


class ToRows(torch.autograd.Function):
    """All columns of own rows, from own columns of all rows."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, together: Together, rows: Counts, columns: Counts) -> Tensor:
        ctx.together, ctx.rows, ctx.columns = together, rows, columns
        return together.to_rows(own, rows, columns)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, own: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.together.to_columns(own, ctx.rows, ctx.columns), None, None, None
