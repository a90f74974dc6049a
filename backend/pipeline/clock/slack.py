"""How much later each action could end with the same makespan: the walk of a clock, backwards."""

from collections import deque

import numpy as np

from backend.pipeline.clock.waits import Waits
from backend.pipeline.kinds import Floats, Ints, Is
from backend.pipeline.program import Program
from backend.pipeline.timeline import Timeline


def slack(program: Program, timeline: Timeline) -> Floats:
    """Of each span of `timeline`, which is that of `program`, the seconds by which its action may
    end later while every other takes as long as it did and the whole no longer: its latest end
    minus its end, 0 on the critical path. A receive is a wait: of it, what waits may begin so much
    later.

    Messages between two ranks stay in order. Where ranks share links, devices or cores, it is not
    known what others would do instead: more may be said to be free there than is.
    """
    plan = program.waits
    busy, hops, ends = _seconds(program, plan, timeline)
    until = float(timeline.end.max(initial=0.0))
    walked = _Backwards(plan, busy, hops, until).walked()
    found = np.zeros(program.num_actions)
    found[plan.rows] = walked.latest - ends
    giving, waiting = plan.gives >= 0, plan.needs >= 0
    found[plan.sends] = walked.arrival[plan.gives[giving]] - timeline.end[plan.sends]
    begins = walked.latest[waiting] - busy[waiting]
    found[plan.receives] = begins - timeline.end[plan.receives]
    return np.maximum(found, 0.0)


def _seconds(program: Program, plan: Waits, timeline: Timeline) -> tuple[Floats, Floats, Floats]:
    """Of each node what it keeps its rank busy and how long the transfer after it took, and its
    end: a message alone is posted, or is there, at once."""
    busy, ends = timeline.seconds[plan.rows], timeline.end[plan.rows].copy()
    busy = np.where(plan.alone, 0.0, busy)
    posted = plan.alone & program.rows.are(Is.SEND)[plan.rows]
    ends[posted] = timeline.start[plan.rows][posted]
    hops = np.zeros(len(plan.rows))
    hops[plan.gives >= 0] = timeline.seconds[plan.sends]
    return busy, hops, ends


class _Backwards:
    """From the end of the segment to its start. A node ends before the next one of its rank begins
    and before its message must leave, and all of a collective begin at once. A message arrives
    before its receiver begins, and before the next one on its channel leaves."""

    def __init__(self, plan: Waits, busy: Floats, hops: Floats, until: float) -> None:
        self._plan, self._busy = plan, busy
        nodes, size = len(plan.rows), plan.num_messages
        self.latest, self.arrival = np.full(nodes, until), np.full(size, until)
        self._leaves: list[float | None] = [None] * size
        self._next, self._before, self._hop = _on_channels(plan, hops)
        self._taken: list[float | None] = [None] * size
        waited = set(plan.needs[plan.needs >= 0].tolist())
        for message in set(range(size)) - waited:  # nobody waits for it
            self._taken[message] = until
        self._begins = [until] * (len(plan.bounds) - 1)
        self._together = [until] * len(plan.members)
        self._missing = plan.members.tolist()
        self._came: dict[int, list[tuple[int, int]]] = {}
        self._parked: dict[int, int] = {}
        self._place = [stop - 1 for stop in plan.bounds[1:].tolist()]
        self._ready = deque(range(len(self._begins)))

    def walked(self) -> "_Backwards":
        """Every rank as far as it goes, in turns."""
        for message in range(len(self._leaves)):
            self._leave(message)
        first = self._plan.bounds.tolist()
        while self._ready:
            rank = self._ready.popleft()
            while self._place[rank] >= first[rank] and self._goes_on(rank):
                pass
        return self

    def _goes_on(self, rank: int) -> bool:
        """Whether the rank came past its node."""
        node = self._place[rank]
        give, need = int(self._plan.gives[node]), int(self._plan.needs[node])
        end = self._begins[rank]
        if give >= 0:
            leaves = self._leaves[give]
            if leaves is None:
                self._parked[give] = rank
                return False
            end = min(end, leaves)
        self._place[rank] -= 1
        self.latest[node] = end
        if need < -1:
            return self._meets(rank, node, -2 - need)
        self._begins[rank] = end - float(self._busy[node])
        if need >= 0:
            self._taken[need] = self._begins[rank]
            self._leave(need)
        return True

    def _meets(self, rank: int, node: int, collective: int) -> bool:
        """The last of a collective lets the others go on."""
        begin = float(self.latest[node] - self._busy[node])
        self._together[collective] = begin = min(begin, self._together[collective])
        self._came.setdefault(collective, []).append((rank, node))
        self._missing[collective] -= 1
        if self._missing[collective]:
            return False
        for other, its in self._came.pop(collective):
            self.latest[its] = begin + self._busy[its]
            self._begins[other] = begin
            if other != rank:
                self._ready.append(other)
        return True

    def _leave(self, message: int) -> None:
        """When a message must leave, once its receiver's begin and the next transfer are known;
        then those in front of it on its channel likewise."""
        while message >= 0 and self._leaves[message] is None:
            taken, behind = self._taken[message], int(self._next[message])
            after = taken if behind < 0 else self._leaves[behind]
            if taken is None or after is None:
                return
            self.arrival[message] = min(taken, after)
            self._leaves[message] = float(self.arrival[message] - self._hop[message])
            if message in self._parked:
                self._ready.append(self._parked.pop(message))
            message = int(self._before[message])


def _on_channels(plan: Waits, hops: Floats) -> tuple[Ints, Ints, Floats]:
    """Of each message the next one on its channel and the one before it, -1 for none, and how long
    its transfer takes."""
    giving = np.flatnonzero(plan.gives >= 0)
    order = giving[np.argsort(plan.channels[giving], kind="stable")]
    same = plan.channels[order][1:] == plan.channels[order][:-1]
    one, other = plan.gives[order[:-1][same]], plan.gives[order[1:][same]]
    behind, before = np.full(plan.num_messages, -1), np.full(plan.num_messages, -1)
    behind[one], before[other] = other, one
    hop = np.zeros(plan.num_messages)
    hop[plan.gives[giving]] = hops[giving]
    return behind, before, hop
