"""Replicas that exchange rows and columns get, with gradients, what one process that has all rows
would slice; threads stand for them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.unit.workers.runtime.thread_group import Meeting, ThreadGroup
from workers.runtime.compute.channels.exchanges import (
    AddRows,
    GatherRows,
    ToColumns,
    Together,
    ToRows,
)


@dataclass
class Swapping(ThreadGroup):
    """`sent` are the numbers that this one gave to others."""

    sent: int = 0

    def swap(self, flat: Tensor, given: Sequence[int], taken: Sequence[int]) -> Tensor:
        own = flat.split(list(given))
        found = [parts[self.place] for parts in self.tell(own)]
        assert [part.numel() for part in found] == list(taken)
        self.sent += sum(part.numel() for to, part in enumerate(own) if to != self.place)
        return torch.cat(found)

    def gather(self, flat: Tensor) -> None:
        found = self.swap(
            flat.chunk(len(self.ranks))[self.place].repeat(len(self.ranks)), *self._ones
        )
        flat.copy_(found)

    @property
    def _ones(self) -> tuple[list[int], list[int]]:
        return [1] * len(self.ranks), [1] * len(self.ranks)

    def broadcast(self, tensor: Tensor, place: int = 0) -> None:
        raise AssertionError("exchanges of activations broadcast nothing")


def replicas(size: int, work: Callable[[Together], Tensor]) -> tuple[list[Tensor], int]:
    """What each makes of its group, and how many numbers all of them sent."""
    meeting = Meeting(size)
    groups = [Swapping(place, meeting) for place in range(size)]
    with ThreadPoolExecutor(size) as pool:
        found = list(pool.map(work, map(Together, groups)))
    return found, sum(group.sent for group in groups)


sizes = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=2, max_size=4)


@settings(max_examples=30, deadline=None)
@given(sizes, st.integers(0, 1000))
@pytest.mark.parametrize("first", [ToColumns, GatherRows])
def test_values_gradients_and_numbers_sent(first: type, given_sizes, seed: int) -> None:
    """Rows -> columns -> rows, or rows -> all rows -> sums of own rows: each is the other's
    backward, so both directions are seen."""
    rows, columns = (tuple(each) for each in zip(*given_sizes, strict=True))
    generator = torch.Generator().manual_seed(seed)
    size, shape = len(rows), (sum(rows), sum(columns))
    every, coming, factor = (
        torch.randint(-9, 9, shape, generator=generator).double() for _ in range(3)
    )

    def work(together: Together) -> Tensor:
        place = together.place
        mine = every.split(rows)[place].clone().requires_grad_()
        counts = together.counts(mine)
        assert counts == rows
        if first is ToColumns:
            passed = ToColumns.apply(mine, together, counts, columns)
            assert torch.equal(passed, every.split(columns, 1)[place])
            scaled = passed * factor.split(columns, 1)[place]
            output = ToRows.apply(scaled, together, counts, columns)
        else:
            passed = GatherRows.apply(mine, together, counts)
            assert torch.equal(passed, every)
            output = AddRows.apply(passed * factor * (place + 1), together, counts)
        output.backward(coming.split(rows)[place])
        return torch.cat([output.detach(), mine.grad])

    found, sent = replicas(size, work)
    times = 1 if first is ToColumns else sum(range(size + 1))
    for mine, value, back in zip(
        found,
        (every * factor * times).split(rows),
        (coming * factor * times).split(rows),
        strict=True,
    ):
        assert torch.equal(mine, torch.cat([value, back]))
    told = size * (size - 1)  # of the rows that each brings
    if first is ToColumns:
        assert sent == told + 4 * (shape[0] * shape[1] - sum(r * c for r, c in given_sizes))
    else:
        assert sent == told + 4 * (size - 1) * shape[0] * shape[1]
