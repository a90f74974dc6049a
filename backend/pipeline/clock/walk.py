"""The walk itself: every node gets its end, in plain Python over plain arrays."""

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from backend.pipeline.clock.waits import Place, ProgramStuck, Waits
from backend.pipeline.kinds import Floats
from backend.pipeline.program import Program

NOT_YET = -1.0
Node = tuple[int, float, int, float, int]
"""(needs, seconds, gives, seconds of the transfer, channel)."""


@dataclass(frozen=True, slots=True)
class Walked:
    """`ends` of the nodes, `arrivals` of the messages, `begun` of the collectives, in seconds;
    `stood` is the node at which each rank ended its walk (its last one + 1 where it came
    through). Where ranks share links or devices, also when nodes began (`starts`) and transfers
    (`posted`); else both follow from the rest."""

    ends: Floats
    arrivals: Floats
    begun: Floats
    stood: list[int]
    starts: Floats | None = None
    posted: Floats | None = None


def walk(plan: Waits, busy: Floats, hops: Floats) -> Walked:
    """Run every rank as far as it goes, in turns; `busy` and `hops` are the seconds of each
    node and of the transfer after it.

    One loop and no calls in it: this is where a long simulation spends its time. Arrays of
    the standard library are walked over faster than long lists, which miss the cache.
    """
    parts = plan.bounds.tolist()
    columns = (plan.needs, busy, plan.gives, hops, plan.channels)
    lists = [array(column.dtype.char, column.tobytes()) for column in columns]
    nodes: list[Iterator[Node]] = [
        zip(*(column[a:b] for column in lists), strict=True) for a, b in pairwise(parts)
    ]
    del lists
    ends = [array("d") for _ in nodes]
    clock = [0.0] * len(nodes)
    arrivals = [NOT_YET] * plan.num_messages
    link_free = [0.0] * plan.pairs.shape[1]
    missing = plan.members.tolist()
    begun = [0.0] * len(missing)
    present: dict[int, list[tuple[int, Node]]] = {}
    parked: dict[int, int] = {}
    held: dict[int, tuple[Node]] = {}
    ready = deque(range(len(nodes)))
    while ready:
        rank = ready.popleft()
        now, finish = clock[rank], ends[rank].append
        for node in chain(held.pop(rank, ()), nodes[rank]):
            need, seconds, give, hop, channel = node
            if need >= 0:
                arrival = arrivals[need]
                if arrival < 0.0:
                    parked[need] = rank
                    held[rank] = (node,)
                    break
                if arrival > now:
                    now = arrival
            elif need < -1:
                collective = -2 - need
                if now > begun[collective]:
                    begun[collective] = now
                missing[collective] -= 1
                if missing[collective]:
                    present.setdefault(collective, []).append((rank, node))
                    break
                now = begun[collective]
                for other, (_, took, *_) in present.pop(collective, ()):
                    clock[other] = now + took
                    ends[other].append(clock[other])
                    ready.append(other)
            now += seconds
            finish(now)
            if give >= 0:
                arrival = link_free[channel]
                if arrival < now:
                    arrival = now
                arrival += hop
                link_free[channel] = arrivals[give] = arrival
                if give in parked:
                    ready.append(parked.pop(give))
        clock[rank] = now
    return Walked(
        ends=np.concatenate(ends) if ends else np.zeros(0),
        arrivals=np.array(arrivals),
        begun=np.array(begun),
        stood=[first + len(own) for first, own in zip(parts, ends, strict=False)],
    )


def stuck(program: Program) -> tuple[Place, ...]:
    """The actions at which ranks wait for ever; empty where the program runs to its end."""
    plan = program.waits.met
    nothing = np.zeros(len(plan.rows))
    return standing(program, plan, walk(plan, nothing, nothing))


def standing(program: Program, plan: Waits, walked: Walked) -> tuple[Place, ...]:
    """Where the ranks stand that have not come through."""
    ends = plan.bounds[1:].tolist()
    return tuple(
        program.place(_awaited(plan, node))
        for node, end in zip(walked.stood, ends, strict=True)
        if node < end
    )


def _awaited(plan: Waits, node: int) -> int:
    """The row of a node that waits: its receive, or its collective."""
    beside = plan.needs[node] >= 0 and not plan.alone[node]
    return int(plan.rows[node]) - int(beside)


def through(program: Program, plan: Waits, walked: Walked) -> Walked:
    """The same; raises `ProgramStuck` where some ranks wait for ever."""
    if places := standing(program, plan, walked):
        raise ProgramStuck(program, places)
    return walked
