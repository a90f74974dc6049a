"""What waits for what, written once: plays a program action by action.

Every action waits for the one before it on its rank. Besides,

    Recv                waits for its Send on the source rank
    AllReduce, Average  wait until every rank of the group has come to it

and nothing else waits: a Send is posted and the rank goes on. Verifier and simulator are
folds over this; the executor obeys the same table. It knows no seconds.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Collective,
    Forward,
    Message,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.clock.waits import ProgramStuck
from tests.oracles.program import Program

Place = tuple[int, int]
"""An action of a program: (rank, index)."""


@dataclass(frozen=True, slots=True)
class Played:
    """An action that ran, and the places that it waited for besides its own rank's order:
    the send of a receive, the last actions of the group before a collective."""

    rank: int
    index: int
    action: Action
    waits: tuple[Place, ...]


def at_once(rank: int) -> float:
    """Any order in which nothing runs before what it waits for."""
    return 0.0


def replay(program: Program, when: Callable[[int], float] = at_once) -> Iterator[Played]:
    """Every action once, after all that it waits for. The actions of one collective come
    together. Raises `ProgramStuck` after the last action that can run.

    Of the ranks that can go on the one with the smallest `when(rank)` goes first, the lowest
    of several: with the time at which each rank is free, actions come in the order of time.
    """
    play = _Play(program)
    ready = [(when(rank), rank) for rank in range(len(program.ranks))]
    heapify(ready)
    while ready:
        _, rank = heappop(ready)
        yield from play.advance(rank)
        for free in play.go_on:
            heappush(ready, (when(free), free))
        play.go_on.clear()
    if places := play.stuck():
        raise ProgramStuck(program.pack(), places)


@dataclass(slots=True)
class _Play:
    """Where each rank stands, what has been sent, who waits for what, and who can go on."""

    program: Program
    at: list[int] = field(init=False)
    go_on: list[int] = field(default_factory=list)
    sent: dict[tuple[int, int, Message], deque[Place]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    awaited: set[tuple[int, int, Message]] = field(default_factory=set)
    arrived: dict[Collective, set[int]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self.at = [0] * len(self.program.ranks)

    def stuck(self) -> tuple[Place, ...]:
        ends = (len(actions) for actions in self.program.ranks)
        return tuple(
            (rank, index)
            for rank, (index, end) in enumerate(zip(self.at, ends, strict=True))
            if index < end
        )

    def advance(self, rank: int) -> Iterator[Played]:
        """Run one action of `rank`, unless it waits or is done; a collective runs as a whole."""
        if self.at[rank] == len(self.program.ranks[rank]):
            return
        action = self.program.ranks[rank][self.at[rank]]
        match action:
            case Send(message, to):
                self.sent[rank, to, message].append((rank, self.at[rank]))
                yield self._play(rank, action)
                if (rank, to, message) in self.awaited:
                    self.awaited.remove((rank, to, message))
                    self.go_on.append(to)
            case Recv(message, source):
                if self.sent[source, rank, message]:
                    yield self._play(rank, action, self.sent[source, rank, message].popleft())
                else:
                    self.awaited.add((source, rank, message))
            case AllReduce(group=group) | Average(group=group):
                self.arrived[action].add(rank)
                if self.arrived[action].issuperset(group):
                    yield from self._meet(action, sorted(self.arrived.pop(action)))
            case Forward() | Recompute() | Backward() | BackwardInput() | BackwardWeight() | Step():
                yield self._play(rank, action)

    def _play(self, rank: int, action: Action, *waits: Place) -> Played:
        self.at[rank] += 1
        self.go_on.append(rank)
        return Played(rank, self.at[rank] - 1, action, waits)

    def _meet(self, action: Collective, members: list[int]) -> Iterator[Played]:
        """The whole group goes on at once, after the last of them has come."""
        waits = tuple((rank, self.at[rank] - 1) for rank in members if self.at[rank])
        for rank in members:
            yield self._play(rank, action, *waits)
