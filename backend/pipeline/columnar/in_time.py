"""The walk where ranks share wires or devices: action by action, in the order of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace

import numpy as np

from backend.pipeline.columnar.clock import NOT_YET, Walked
from backend.pipeline.columnar.layout import Layout
from backend.pipeline.columnar.table import Floats
from backend.pipeline.simulate import Cores


@dataclass(frozen=True, slots=True)
class Roads:
    """`paths[w]`: the shared wires of the layout's wire w, by number; `latency[w]` the seconds
    at the end of a transfer in which they are free; `devices[r]`: the device of rank r; `cores`
    if devices share those of their hosts."""

    paths: Sequence[tuple[int, ...]]
    latency: Sequence[float]
    devices: Sequence[int]
    cores: Cores | None = None


def walk_in_time(layout: Layout, busy: Floats, hops: Floats, roads: Roads) -> Walked:
    """What `walk` does, with shared wires and devices given to those that come first; of several
    at once the lowest rank. The same rule as `backend.pipeline.replay`: each turn of a rank is
    one action (a receive, a compute or meeting, a send)."""
    bounds = layout.bounds.tolist()
    needs, gives, wires = layout.needs.tolist(), layout.gives.tolist(), layout.wires.tolist()
    took, hop = busy.tolist(), hops.tolist()
    count = len(bounds) - 1
    at, clock = bounds[:-1], [0.0] * count
    stage = [RECEIVE] * count
    ends, starts = [0.0] * len(needs), [0.0] * len(needs)
    arrivals, posted = [NOT_YET] * layout.num_messages, [0.0] * layout.num_messages
    free = [0.0] * (1 + max((wire for path in roads.paths for wire in path), default=0))
    device_free = [0.0] * (1 + max(roads.devices, default=0))
    hosts = roads.cores.hosts if roads.cores else ()
    core_free = {host: [0.0] * (roads.cores.each if roads.cores else 0) for host in hosts}
    missing = layout.meetings.tolist()
    begun = [0.0] * len(missing)
    present: dict[int, list[int]] = {}
    parked: dict[int, int] = {}
    ready = [(0.0, rank) for rank in range(count)]
    while ready:
        now, rank = heappop(ready)
        node = at[rank]
        if node == bounds[rank + 1]:
            continue
        need = needs[node]
        if stage[rank] == RECEIVE:
            stage[rank] = COMPUTE
            if need >= 0:
                arrival = arrivals[need]
                if arrival < 0.0:
                    parked[need] = rank
                    stage[rank] = RECEIVE
                    continue
                if arrival > now:
                    clock[rank] = arrival
                heappush(ready, (clock[rank], rank))
                continue
        if stage[rank] == SEND:
            give, wire = gives[node], wires[node]
            begin = now
            for one in roads.paths[wire]:
                if free[one] > begin:
                    begin = free[one]
            arrival = begin + hop[node]
            held = arrival - roads.latency[wire]
            for one in roads.paths[wire]:
                free[one] = held if held > begin else begin
            posted[give], arrivals[give] = begin, arrival
            if give in parked:
                other = parked.pop(give)
                heappush(ready, (clock[other], other))
            stage[rank], at[rank] = RECEIVE, node + 1
            heappush(ready, (now, rank))
            continue
        if need < -1:
            meeting = -2 - need
            if now > begun[meeting]:
                begun[meeting] = now
            missing[meeting] -= 1
            present.setdefault(meeting, []).append(rank)
            if missing[meeting]:
                continue
            for other in sorted(present.pop(meeting)):
                place = at[other]
                starts[place] = begun[meeting]
                ends[place] = clock[other] = begun[meeting] + took[place]
                stage[other], at[other] = RECEIVE, place + 1
                heappush(ready, (clock[other], other))
            continue
        device = roads.devices[rank]
        begin = device_free[device] if device_free[device] > now else now
        if hosts:
            taken = core_free[hosts[device]]
            begin = max(begin, taken[0])
            heapreplace(taken, begin + took[node])
        starts[node] = begin
        ends[node] = clock[rank] = device_free[device] = begin + took[node]
        if gives[node] >= 0:
            stage[rank] = SEND
        else:
            stage[rank], at[rank] = RECEIVE, node + 1
        heappush(ready, (clock[rank], rank))
    return Walked(
        ends=np.array(ends),
        arrivals=np.array(arrivals),
        begun=np.array(begun),
        stuck=bool(parked or present),
        starts=np.array(starts),
        posted=np.array(posted),
    )


RECEIVE, COMPUTE, SEND = range(3)
"""What a rank does next at its node."""
