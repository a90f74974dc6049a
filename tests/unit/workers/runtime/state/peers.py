"""Pipelines that exchange without processes: all in one, by threads, or one beside still ones."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from threading import Barrier, Thread
from typing import Any

import torch
from torch import Tensor

from workers.runtime.state.exchanges.exchange import Exchange


@dataclass(frozen=True)
class Still:
    """Another pipeline that has not moved."""

    ranks: tuple[int, ...] = (0, 1)
    place: int = 0

    def sum(self, tensor: Tensor) -> None:
        """Zeros are added."""

    def gathered(self, value: int) -> list[int]:
        """It has nothing to send."""
        return [value, 0]

    def broadcast(self, tensor: Tensor, place: int = 0) -> None:
        """Nobody looks at it."""


class Thereby:
    """One of several threads; sums are made in the order of the places."""

    def __init__(self, place: int, barrier: Barrier, table: dict[int, Any]) -> None:
        self.place, self.ranks = place, tuple(range(barrier.parties))
        self._barrier, self._table, self.sent = barrier, table, 0

    def sum(self, tensor: Tensor) -> None:
        found = self._all(tensor)
        tensor.copy_(sum(found[1:], found[0]))

    def gathered(self, value: int) -> list[int]:
        return self._all(value)

    def broadcast(self, tensor: Tensor, place: int = 0) -> None:
        tensor.copy_(self._all(tensor)[place])
        self.sent += tensor.nbytes * (place == self.place)

    def _all(self, value: Any) -> list[Any]:
        self._table[self.place] = deepcopy(value)
        self._barrier.wait()
        found = [self._table[place] for place in self.ranks]
        self._barrier.wait()
        return found


def exchanged(
    exchanges: Sequence[Exchange], weights: Sequence[Sequence[Tensor]], updates: int
) -> list[int]:
    """All of them at once, each with its own weights; the bytes that each broadcast."""
    barrier, table = Barrier(len(exchanges)), {}
    faults: list[BaseException] = []
    peers = [Thereby(place, barrier, table) for place in range(len(exchanges))]

    def of(place: int) -> Callable[[], None]:
        def work() -> None:
            try:
                with torch.no_grad():
                    exchanges[place].exchange(weights[place], updates, peers[place])
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
    return [peer.sent for peer in peers]
