"""Linear and embedding layers of which this replica has a slice, by AccPar's types II and III.

Each takes and gives its replica's own rows, as the whole layer does. Gradients of a slice are those
of all replicas' rows: they are not to be summed over replicas.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from backend.planning.channels.types import LayerType
from workers.runtime.compute.channels.exchanges import (
    AddRows,
    Counts,
    GatherRows,
    ToColumns,
    Together,
    ToRows,
    narrowed,
)


class LinearByInputs(nn.Module):
    """Type II: `weight` is of all outputs and own inputs. The bias is of all outputs, a copy on
    each replica, whose gradients are summed as those of other copies are."""

    def __init__(self, whole: nn.Linear, sizes: Counts, together: Together) -> None:
        super().__init__()
        self.weight = _slice(whole.weight, sizes, 1, together)
        self.bias = None if whole.bias is None else nn.Parameter(whole.bias.detach().clone())
        self._sizes, self._together = sizes, together

    def forward(self, own: Tensor) -> Tensor:
        """Own rows of the whole layer's output."""
        rows = own.reshape(-1, own.shape[-1])
        counts = self._together.counts(rows)
        columns = ToColumns.apply(rows, self._together, counts, self._sizes)  # type: ignore[no-untyped-call]
        found: Tensor = AddRows.apply(linear(columns, self.weight), self._together, counts)  # type: ignore[no-untyped-call]
        found = found.view(*own.shape[:-1], found.shape[-1])
        return found if self.bias is None else found + self.bias


class LinearByOutputs(nn.Module):
    """Type III: `weight` and bias are of own outputs."""

    def __init__(self, whole: nn.Linear, sizes: Counts, together: Together) -> None:
        super().__init__()
        self.weight = _slice(whole.weight, sizes, 0, together)
        self.bias = None if whole.bias is None else _slice(whole.bias, sizes, 0, together)
        self._sizes, self._together = sizes, together

    def forward(self, own: Tensor) -> Tensor:
        """Own rows of the whole layer's output."""
        rows = own.reshape(-1, own.shape[-1])
        counts = self._together.counts(rows)
        every = GatherRows.apply(rows, self._together, counts)  # type: ignore[no-untyped-call]
        columns = linear(every, self.weight, self.bias)
        found: Tensor = ToRows.apply(columns, self._together, counts, self._sizes)  # type: ignore[no-untyped-call]
        return found.view(*own.shape[:-1], found.shape[-1])


class EmbeddingByRows(nn.Module):
    """Type II: `weight` has own numbers of the vocabulary, all dimensions."""

    def __init__(self, whole: nn.Embedding, sizes: Counts, together: Together) -> None:
        super().__init__()
        self.weight = _slice(whole.weight, sizes, 0, together)
        self._first, self._together = sum(sizes[: together.place]), together

    def forward(self, numbers: Tensor) -> Tensor:
        """Own rows of the whole layer's output; numbers of others add zeros here."""
        rows = numbers.reshape(-1)
        counts = self._together.counts(rows)
        own = self._together.all_rows(rows, counts) - self._first
        is_here = (own >= 0) & (own < len(self.weight))
        looked_up = embedding(own.clamp(0, len(self.weight) - 1), self.weight)
        partial = looked_up.masked_fill_(~is_here.unsqueeze(-1), 0)
        found: Tensor = AddRows.apply(partial, self._together, counts)  # type: ignore[no-untyped-call]
        return found.view(*numbers.shape, found.shape[-1])


class EmbeddingByColumns(nn.Module):
    """Type III: `weight` has all numbers of the vocabulary, own dimensions."""

    def __init__(self, whole: nn.Embedding, sizes: Counts, together: Together) -> None:
        super().__init__()
        self.weight = _slice(whole.weight, sizes, 1, together)
        self._sizes, self._together = sizes, together

    def forward(self, numbers: Tensor) -> Tensor:
        """Own rows of the whole layer's output."""
        rows = numbers.reshape(-1)
        counts = self._together.counts(rows)
        columns = embedding(self._together.all_rows(rows, counts), self.weight)
        found: Tensor = ToRows.apply(columns, self._together, counts, self._sizes)  # type: ignore[no-untyped-call]
        return found.view(*numbers.shape, found.shape[-1])


SplitLayer = Callable[[Any, Counts, Together], nn.Module]
SPLIT_LAYERS: dict[tuple[type[nn.Module], LayerType], tuple[SplitLayer, dict[str, int]]] = {
    (nn.Linear, LayerType.INPUTS): (LinearByInputs, {"weight": 1}),
    (nn.Linear, LayerType.OUTPUTS): (LinearByOutputs, {"weight": 0, "bias": 0}),
    (nn.Embedding, LayerType.INPUTS): (EmbeddingByRows, {"weight": 0}),
    (nn.Embedding, LayerType.OUTPUTS): (EmbeddingByColumns, {"weight": 1}),
}
"""What takes the place of a module, and the dimension along which each tensor is cut."""


def _slice(whole: Tensor, sizes: Counts, dim: int, together: Together) -> nn.Parameter:
    return nn.Parameter(narrowed(whole.detach(), sizes, together.place, dim))
