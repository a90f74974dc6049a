"""Samples loaded ahead of their turn, in a thread beside the compute, each with its span."""

import threading
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from queue import Full, Queue
from typing import Literal

import torch
from torch import Tensor

from backend.pipeline.actions import Action, Forward
from backend.pipeline.timeline import Span
from workers.definitions.samples import Samples, mapped, tensors
from workers.runtime.samples.epoch import Epoch, Form

AHEAD = 2
"""Microbatches that are loaded before their turn: one hides the loading, two its scatter."""

What = Literal["inputs", "targets"]
Wanted = tuple[int, Forward, What]
Clock = Callable[[], float]


class Loading:
    """The samples that one rank's actions ask for. What lies in memory is taken at its turn,
    since there is nothing to hide; `spans` says when which forward's samples were loaded."""

    def __init__(
        self,
        epoch: Epoch,
        actions: Sequence[Action],
        judging: Container[int],
        rank: int,
        clock: Clock,
    ) -> None:
        self._epoch, self._rank, self._clock = epoch, rank, clock
        self._wanted = tuple(_wanted(actions, judging))
        self._next = 0
        self._over = threading.Event()
        self._ready: Queue[Samples | BaseException] = Queue(AHEAD)
        self.spans: list[Span] = []
        self._is_ahead = bool(self._wanted) and not epoch.part.is_at_hand
        if self._is_ahead:
            threading.Thread(target=self._run, daemon=True).start()

    @property
    def first(self) -> int:
        return self._epoch.first

    def bundle(self, number: int, device: torch.device) -> tuple[Tensor, ...]:
        return tuple(tensor.to(device) for tensor in tensors(self._take(number, "inputs")))

    def answers(self, number: int, device: torch.device) -> Samples:
        return mapped(self._take(number, "targets"), lambda tensor: tensor.to(device))

    def form(self, number: int) -> Form:
        return self._epoch.form(number)

    def samples(self, number: int) -> Sequence[int]:
        return self._epoch.samples(number)

    def share(self, number: int) -> float:
        return self._epoch.share(number)

    def num_real(self, number: int) -> int:
        return self._epoch.num_real(number)

    def close(self) -> None:
        """Load no more."""
        self._over.set()

    def _take(self, number: int, what: What) -> Samples:
        wanted = self._wanted[self._next]
        assert (wanted[1].microbatch, wanted[2]) == (number, what), "another forward's turn"
        self._next += 1
        found = self._ready.get() if self._is_ahead else self._load(wanted)
        if isinstance(found, BaseException):
            raise found
        return found

    def _run(self) -> None:
        for wanted in self._wanted:
            try:
                found: Samples | BaseException = self._load(wanted)
            except Exception as error:
                found = error
            self._put(found)
            if self._over.is_set() or isinstance(found, BaseException):
                return

    def _put(self, found: Samples | BaseException) -> None:
        while not self._over.is_set():
            try:
                return self._ready.put(found, timeout=0.1)
            except Full:  # is anybody still there who wants it?
                continue
        return None

    def _load(self, wanted: Wanted) -> Samples:
        index, action, what = wanted
        start = self._clock()
        load = self._epoch.inputs if what == "inputs" else self._epoch.targets
        found = load(action.microbatch)
        self.spans.append(Span(self._rank, index, action, start, self._clock()))
        return found


@contextmanager
def loading(
    epoch: Epoch, actions: Sequence[Action], judging: Container[int], rank: int, clock: Clock
) -> Iterator[Loading]:
    """The samples of a segment; `judging` are the numbers of the stages that need the targets."""
    found = Loading(epoch, actions, judging, rank, clock)
    try:
        yield found
    finally:
        found.close()


def _wanted(actions: Sequence[Action], judging: Container[int]) -> Iterator[Wanted]:
    for index, action in enumerate(actions):
        if isinstance(action, Forward):
            if action.stage == 0:
                yield index, action, "inputs"
            if action.stage in judging:
                yield index, action, "targets"
