"""A program on a clock: the predicted timeline. It is told every duration and knows none."""

from dataclasses import dataclass, field
from typing import Protocol

from backend.pipeline.actions import (
    AllReduce,
    Backward,
    BackwardInput,
    BackwardWeight,
    Compute,
    Forward,
    Message,
    Recv,
    Send,
    Step,
)
from backend.pipeline.program import Program
from backend.pipeline.replay import Played, replay
from backend.pipeline.timeline import Span, Timeline


class Durations(Protocol):
    """How long things take, in seconds, not negative."""

    def compute(self, rank: int, action: Compute) -> float:
        """Seconds for which `action` keeps `rank` busy."""

    def transfer(self, message: Message, source: int, to: int) -> float:
        """Seconds from the first to the last byte of `message` between two ranks."""

    def all_reduce(self, stage: int, group: tuple[int, ...]) -> float:
        """Seconds of one gradient reduction once all of `group` have come."""


def simulate(program: Program, durations: Durations) -> Timeline:
    """The timeline of `program`, in seconds from the start of the segment.

    An action starts as soon as its rank is free and what it waits for is there. A transfer
    keeps the channel from sender to receiver busy, one after another, and not the ranks. The
    span of a send is the transfer, that of a receive the wait. Raises `ProgramStuck`.
    """
    clock = _Clock(durations, [[] for _ in program.ranks], [[] for _ in program.ranks])
    for played in replay(program):
        clock.run(played)
    return Timeline(tuple(span for spans in clock.spans for span in spans))


@dataclass(slots=True)
class _Clock:
    """`free[rank][index]`: when the rank can go on after that action."""

    durations: Durations
    spans: list[list[Span]]
    free: list[list[float]]
    channels: dict[tuple[int, int], float] = field(default_factory=dict)

    def run(self, played: Played) -> None:
        rank, action = played.rank, played.action
        now = self.free[rank][-1] if played.index else 0.0
        start, end, free = now, now, now
        match action:
            case Send(message, to):
                start = max(now, self.channels.get((rank, to), 0.0))
                end = start + self.durations.transfer(message, rank, to)
                self.channels[rank, to] = end
            case Recv():
                end = free = max(now, *(self.spans[at][index].end for at, index in played.waits))
            case AllReduce(stage, group):
                start = max((self.free[at][index] for at, index in played.waits), default=now)
                end = free = start + self.durations.all_reduce(stage, group)
            case Forward() | Backward() | BackwardInput() | BackwardWeight() | Step():
                end = free = now + self.durations.compute(rank, action)
        self.spans[rank].append(Span(rank, played.index, action, start, end))
        self.free[rank].append(free)
