"""What waits for what, written once: plays a program action by action.

Every action waits for the one before it on its rank. Besides,

    Recv        waits for its Send on the source rank
    AllReduce   waits until every rank of the group has come to it

and nothing else waits: a Send is posted and the rank goes on. Verifier and simulator are
folds over this; the executor obeys the same table. It knows no seconds.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from backend.errors import StageflowError
from backend.pipeline.actions import (
    Action,
    AllReduce,
    Backward,
    BackwardInput,
    BackwardWeight,
    Forward,
    Message,
    Recv,
    Send,
    Step,
)
from backend.pipeline.notation import format_action
from backend.pipeline.program import Program

Place = tuple[int, int]
"""An action of a program: (rank, index)."""


@dataclass(frozen=True, slots=True)
class Played:
    """An action that ran, and the places that it waited for besides its own rank's order:
    the send of a receive, the last actions of the group before an all-reduce."""

    rank: int
    index: int
    action: Action
    waits: tuple[Place, ...]


class ProgramStuck(StageflowError):
    """Some ranks wait for ever: `places` are the actions at which they stand."""

    def __init__(self, program: Program, places: tuple[Place, ...]) -> None:
        self.places = places
        stands = ", ".join(
            f"rank {rank} at action {index} ({format_action(program.ranks[rank][index])})"
            for rank, index in places
        )
        super().__init__(f"program {program.schedule!r} waits for ever: {stands}")


def replay(program: Program) -> Iterator[Played]:
    """Every action once, after all that it waits for. The actions of one all-reduce come
    together. Raises `ProgramStuck` after the last action that can run."""
    play = _Play(program)
    ready = deque(range(len(program.ranks)))
    while ready:
        yield from play.advance(ready.popleft(), ready)
    if places := play.stuck():
        raise ProgramStuck(program, places)


@dataclass(slots=True)
class _Play:
    """Where each rank stands, what has been sent, and who waits for what."""

    program: Program
    at: list[int] = field(init=False)
    sent: dict[tuple[int, int, Message], deque[Place]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    awaited: set[tuple[int, int, Message]] = field(default_factory=set)
    arrived: dict[AllReduce, set[int]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self.at = [0] * len(self.program.ranks)

    def stuck(self) -> tuple[Place, ...]:
        ends = (len(actions) for actions in self.program.ranks)
        return tuple(
            (rank, index)
            for rank, (index, end) in enumerate(zip(self.at, ends, strict=True))
            if index < end
        )

    def advance(self, rank: int, ready: deque[int]) -> Iterator[Played]:
        """Run `rank` until it waits; ranks that this lets go on join `ready`."""
        actions = self.program.ranks[rank]
        while (index := self.at[rank]) < len(actions):
            action = actions[index]
            match action:
                case Send(message, to):
                    yield self._play(rank, action)
                    self.sent[rank, to, message].append((rank, index))
                    if (rank, to, message) in self.awaited:
                        self.awaited.remove((rank, to, message))
                        ready.append(to)
                case Recv(message, source):
                    if not self.sent[source, rank, message]:
                        self.awaited.add((source, rank, message))
                        return
                    yield self._play(rank, action, self.sent[source, rank, message].popleft())
                case AllReduce(group=group):
                    self.arrived[action].add(rank)
                    if not self.arrived[action].issuperset(group):
                        return
                    members = sorted(self.arrived.pop(action))
                    yield from self._meet(action, members)
                    ready.extend(member for member in members if member != rank)
                case Forward() | Backward() | BackwardInput() | BackwardWeight() | Step():
                    yield self._play(rank, action)

    def _play(self, rank: int, action: Action, *waits: Place) -> Played:
        self.at[rank] += 1
        return Played(rank, self.at[rank] - 1, action, waits)

    def _meet(self, action: AllReduce, members: list[int]) -> Iterator[Played]:
        """The whole group goes on at once, after the last of them has come."""
        waits = tuple((rank, self.at[rank] - 1) for rank in members if self.at[rank])
        for rank in members:
            self.at[rank] += 1
            yield Played(rank, self.at[rank] - 1, action, waits)
