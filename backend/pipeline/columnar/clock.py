"""The walk itself: every node of a layout gets its end, in plain Python over plain arrays."""

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from backend.pipeline.columnar.layout import Layout
from backend.pipeline.columnar.table import Floats

NOT_YET = -1.0
Node = tuple[int, float, int, float, int]
"""(needs, seconds, gives, seconds of the transfer, wire)."""


@dataclass(frozen=True, slots=True)
class Walked:
    """`ends` of the nodes, `arrivals` of the messages, `begun` of the meetings, in seconds;
    `stuck` where some ranks wait for ever. Where ranks share wires or devices, also when nodes
    began (`starts`) and transfers (`posted`); else both follow from the rest."""

    ends: Floats
    arrivals: Floats
    begun: Floats
    stuck: bool
    starts: Floats | None = None
    posted: Floats | None = None


def walk(layout: Layout, busy: Floats, hops: Floats) -> Walked:
    """Run every rank as far as it goes, in turns; `busy` and `hops` are the seconds of each
    node and of the transfer after it.

    One loop and no calls in it: this is where a long simulation spends its time. Arrays of
    the standard library are walked over faster than long lists, which miss the cache.
    """
    parts = layout.bounds.tolist()
    columns = (layout.needs, busy, layout.gives, hops, layout.wires)
    lists = [array(column.dtype.char, column.tobytes()) for column in columns]
    nodes: list[Iterator[Node]] = [
        zip(*(column[a:b] for column in lists), strict=True) for a, b in pairwise(parts)
    ]
    del lists
    ends: list[list[float]] = [[] for _ in nodes]
    clock = [0.0] * len(nodes)
    arrivals = [NOT_YET] * layout.num_messages
    wire_free = [0.0] * layout.num_wires
    missing = layout.meetings.tolist()
    begun = [0.0] * len(missing)
    present: dict[int, list[tuple[int, Node]]] = {}
    parked: dict[int, int] = {}
    held: dict[int, tuple[Node]] = {}
    ready = deque(range(len(nodes)))
    while ready:
        rank = ready.popleft()
        now, finish = clock[rank], ends[rank].append
        for node in chain(held.pop(rank, ()), nodes[rank]):
            need, seconds, give, hop, wire = node
            if need >= 0:
                arrival = arrivals[need]
                if arrival < 0.0:
                    parked[need] = rank
                    held[rank] = (node,)
                    break
                if arrival > now:
                    now = arrival
            elif need < -1:
                meeting = -2 - need
                if now > begun[meeting]:
                    begun[meeting] = now
                missing[meeting] -= 1
                if missing[meeting]:
                    present.setdefault(meeting, []).append((rank, node))
                    break
                now = begun[meeting]
                for other, (_, took, *_) in present.pop(meeting, ()):
                    clock[other] = now + took
                    ends[other].append(clock[other])
                    ready.append(other)
            now += seconds
            finish(now)
            if give >= 0:
                arrival = wire_free[wire]
                if arrival < now:
                    arrival = now
                arrival += hop
                wire_free[wire] = arrivals[give] = arrival
                if give in parked:
                    ready.append(parked.pop(give))
        clock[rank] = now
    return Walked(
        ends=np.array(list(chain.from_iterable(ends))),
        arrivals=np.array(arrivals),
        begun=np.array(begun),
        stuck=bool(parked or present),
    )
