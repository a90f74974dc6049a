"""Ranks that share links, devices and cores, turn by turn: every part of a sum is a turn too."""

from heapq import heappop, heappush, heapreplace
from math import inf

import numpy as np

from backend.pipeline.clock.in_time import Shared
from backend.pipeline.clock.waits import Waits
from backend.pipeline.clock.walk import NOT_YET, Walked
from backend.pipeline.kinds import Floats

RECEIVE, COMPUTE, SEND, SUM = range(4)


def walk_in_time(plan: Waits, busy: Floats, hops: Floats, shared: Shared) -> Walked:
    """What `backend.pipeline.clock.in_time` finds: of several turns at once the lowest rank's is
    first. A rank decides of a part of a sum when the one before has arrived."""
    return _Walk(plan, busy, hops, shared).run()


class _Walk:
    def __init__(self, plan: Waits, busy: Floats, hops: Floats, shared: Shared) -> None:
        self.plan, self.took, self.hops, self.shared = plan, busy, hops, shared
        ranks, nodes = len(plan.bounds) - 1, len(plan.needs)
        self.at, self.clock = plan.bounds[:-1].tolist(), [0.0] * ranks
        self.step = [RECEIVE] * ranks
        self.starts, self.ends = np.zeros(nodes), np.zeros(nodes)
        self.arrivals = np.full(plan.num_messages, NOT_YET)
        self.posted = np.zeros(plan.num_messages)
        self.links = [0.0] * shared.num_links
        self.devices = [0.0] * (1 + max(shared.devices))
        cores = shared.cores
        self.cores = {host: [0.0] * cores.each for host in cores.hosts} if cores else {}
        self.missing, self.begun = plan.members.tolist(), np.zeros(len(plan.members))
        self.present: dict[int, list[int]] = {}
        self.parked: dict[int, int] = {}
        self.done, self.end = [0] * ranks, [-inf] * ranks
        self.ready = [(0.0, rank) for rank in range(ranks)]

    def run(self) -> Walked:
        while self.ready:
            now, rank = heappop(self.ready)
            if self.at[rank] < self.plan.bounds[rank + 1]:
                self._turn(now, rank, self.at[rank])
        columns = self.ends, self.arrivals, self.begun
        return Walked(*columns, self.at, self.starts, self.posted)

    def _turn(self, now: float, rank: int, node: int) -> None:
        need = int(self.plan.needs[node])
        if self.step[rank] == RECEIVE:
            if need >= 0 and self.arrivals[need] == NOT_YET:
                self.parked[need] = rank
                return
            is_message = bool(self.plan.alone[node])
            self.step[rank] = SEND if is_message else COMPUTE
            if need >= 0:
                now = max(now, float(self.arrivals[need]))
                if is_message:
                    self._next(rank, node, float(self.starts[node]), now)
                else:
                    self._again(rank, now)
                return
        if self.step[rank] == SEND:
            self._send(now, rank, node)
        elif self.step[rank] == SUM:
            self._sum(now, rank, node, -2 - need)
        elif need < -1:
            self._meet(now, rank, -2 - need)
        else:
            self._compute(now, rank, node)

    def _again(self, rank: int, at: float) -> None:
        self.clock[rank] = at
        heappush(self.ready, (at, rank))

    def _next(self, rank: int, node: int, start: float, end: float) -> None:
        self.starts[node], self.ends[node] = start, end
        self.step[rank], self.at[rank] = RECEIVE, node + 1
        self._again(rank, end)

    def _compute(self, now: float, rank: int, node: int) -> None:
        device, took = self.shared.devices[rank], float(self.took[node])
        start = max(now, self.devices[device])
        if self.shared.cores:
            free = self.cores[self.shared.cores.hosts[device]]
            start = max(start, free[0])
            heapreplace(free, start + took)
        self.devices[device] = start + took
        if self.plan.gives[node] >= 0:
            self.starts[node], self.ends[node], self.step[rank] = start, start + took, SEND
            self._again(rank, start + took)
        else:
            self._next(rank, node, start, start + took)

    def _send(self, now: float, rank: int, node: int) -> None:
        give, channel = int(self.plan.gives[node]), int(self.plan.channels[node])
        path = self.shared.paths[channel]
        start = max(now, *(self.links[link] for link in path))
        arrival = start + float(self.hops[node])
        for link in path:
            self.links[link] = max(start, arrival - self.shared.latency[channel])
        self.posted[give], self.arrivals[give] = start, arrival
        if give in self.parked:
            other = self.parked.pop(give)
            heappush(self.ready, (self.clock[other], other))
        self._next(rank, node, float(self.starts[node]), now)

    def _meet(self, now: float, rank: int, number: int) -> None:
        self.begun[number] = max(now, self.begun[number])
        self.missing[number] -= 1
        self.present.setdefault(number, []).append(rank)
        if self.missing[number]:
            return
        begun, rings = float(self.begun[number]), self.shared.rings
        for other in self.present.pop(number):
            if rings and rings[number]:
                self.step[other] = SUM
                heappush(self.ready, (begun, other))
            else:
                place = self.at[other]
                self._next(other, place, begun, begun + float(self.took[place]))

    def _sum(self, now: float, rank: int, node: int, number: int) -> None:
        ring, began = self.shared.rings[number], float(self.begun[number])
        assert ring
        links, parts = ring[0].get(rank, ()), ring[1]
        if self.done[rank] == len(parts):
            end, self.end[rank], self.done[rank] = self.end[rank], -inf, 0
            self._next(rank, node, began, max(end, began))
            return
        part = parts[self.done[rank]]
        start = max(began - part.before, self.end[rank], *(self.links[link] for link, _ in links))
        for link, share in links:
            self.links[link] = start + share * part.seconds
        self.end[rank] = start + part.seconds
        self.done[rank] += 1
        heappush(self.ready, (max(now, self.end[rank]), rank))
