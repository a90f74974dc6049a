"""A program on a clock, action by action: the predicted timeline."""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heapreplace

from backend.pipeline.actions import (
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Compute,
    Forward,
    Message,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.clock.durations import Durations
from backend.pipeline.clock.in_time import Cores
from backend.pipeline.links import Links
from backend.pipeline.simulate import OWN_LINKS
from backend.pipeline.timeline import Span, Timeline
from tests.oracles.program import Program
from tests.oracles.replay import Played, replay


def simulate(
    program: Program,
    durations: Durations,
    links: Links = OWN_LINKS,
    cores: Cores | None = None,
) -> Timeline:
    """The timeline of `program`, in seconds from the start of the segment.

    An action starts as soon as its rank is free and what it waits for is there. A transfer
    keeps its wires busy and not the ranks; messages between two ranks stay in order. The span
    of a send is the transfer, that of a receive the wait. Pipelines on one device compute one at
    a time, first come, first served (ours: real devices overlap small kernels a little), and
    so do devices that share `cores` (ours: a real kernel deals them out in slices; the work
    done by the end is the same). All-reduces use no wire. Raises `ProgramStuck`.
    """
    clock = _Clock(program, durations, links, cores)
    for played in replay(program, clock.now):
        clock.run(played)
    return Timeline.of([span for spans in clock.spans for span in spans])


@dataclass(slots=True)
class _Clock:
    """`free[rank][n]`: when the rank can go on after n actions; `wires`, `devices` and
    the cores of each host (`taken`): until when each is taken."""

    program: Program
    durations: Durations
    links: Links
    cores: Cores | None
    spans: list[list[Span]] = field(init=False)
    free: list[list[float]] = field(init=False)
    devices: list[float] = field(init=False)
    wires: defaultdict[Hashable, float] = field(default_factory=lambda: defaultdict(float))
    taken: dict[int, list[float]] = field(init=False)

    def __post_init__(self) -> None:
        cores = self.cores or Cores((), 0)
        self.taken = {host: [0.0] * cores.each for host in cores.hosts}
        self.spans = [[] for _ in self.program.ranks]
        self.free = [[0.0] for _ in self.program.ranks]
        self.devices = [0.0] * self.program.shape.num_devices

    def now(self, rank: int) -> float:
        return self.free[rank][-1]

    def run(self, played: Played) -> None:
        rank, action = played.rank, played.action
        start = end = free = self.now(rank)
        match action:
            case Send(message, to):
                start, end = self._transfer(message, rank, to)
            case Recv():
                end = free = max(start, *(self.spans[at][index].end for at, index in played.waits))
            case AllReduce() | Average():
                start = self._met(played)
                end = free = start + self.durations.collective(action)
            case Forward() | Recompute() | Backward() | BackwardInput() | BackwardWeight() | Step():
                start, end = self._compute(rank, action)
                free = end
        self.spans[rank].append(Span(rank, played.index, action, start, end))
        self.free[rank].append(free)

    def _compute(self, rank: int, action: Compute) -> tuple[float, float]:
        device = self.program.shape.device_of(rank)
        start = max(self.now(rank), self.devices[device])
        seconds = self.durations.compute(rank, action)
        if self.cores is not None:
            free = self.taken[self.cores.hosts[device]]
            start = max(start, free[0])
            heapreplace(free, start + seconds)
        self.devices[device] = start + seconds
        return start, self.devices[device]

    def _transfer(self, message: Message, rank: int, to: int) -> tuple[float, float]:
        path = self.links.path(rank, to)
        start = max(self.now(rank), *(self.wires[wire] for wire in path))
        end = start + self.durations.transfer(message, rank, to)
        for wire in path:
            self.wires[wire] = max(start, end - self.links.latency(rank, to))
        return start, end

    def _met(self, played: Played) -> float:
        """When the last of the group came; 0 where none had anything to do before."""
        return max((self.free[at][index + 1] for at, index in played.waits), default=0.0)
