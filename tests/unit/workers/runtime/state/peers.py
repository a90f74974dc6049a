"""Pipelines that exchange without processes: all in one, by threads, or one beside still ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Barrier, Thread

import torch
from torch import Tensor

from workers.runtime.state.exchanges.exchange import Exchange


@dataclass(frozen=True)
class Still:
    """Another pipeline that has not moved."""

    ranks: tuple[int, ...] = (0, 1)

    def sum(self, tensor: Tensor) -> None:
        """Zeros are added."""


class Thereby:
    """One of several threads; sums are made in the order of the places."""

    def __init__(self, place: int, barrier: Barrier, table: dict[int, Tensor]) -> None:
        self.place, self.ranks = place, tuple(range(barrier.parties))
        self._barrier, self._table = barrier, table

    def sum(self, tensor: Tensor) -> None:
        found = self._all(tensor)
        tensor.copy_(sum(found[1:], found[0]))

    def _all(self, tensor: Tensor) -> list[Tensor]:
        self._table[self.place] = tensor.clone()
        self._barrier.wait()
        found = [self._table[place] for place in self.ranks]
        self._barrier.wait()
        return found


def exchanged(
    exchanges: Sequence[Exchange], weights: Sequence[Sequence[Tensor]], updates: int
) -> None:
    """All of them at once, each with its own weights."""
    barrier, table = Barrier(len(exchanges)), {}
    faults: list[BaseException] = []

    def of(place: int) -> Callable[[], None]:
        def work() -> None:
            try:
                with torch.no_grad():
                    peers = Thereby(place, barrier, table)
                    exchanges[place].exchange(weights[place], updates, peers)
            except BaseException as fault:
                faults.append(fault)
                barrier.abort()

        return work

    threads = [Thread(target=of(place)) for place in range(len(exchanges))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
