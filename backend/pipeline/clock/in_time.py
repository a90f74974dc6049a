"""The walk where ranks share links or devices: action by action, in the order of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heappushpop, heapreplace
from itertools import chain

import numpy as np

from backend.pipeline.clock.sums import NumberedRing, SharedSums
from backend.pipeline.clock.waits import Waits
from backend.pipeline.clock.walk import NOT_YET, Walked
from backend.pipeline.kinds import Floats


@dataclass(frozen=True, slots=True)
class Cores:
    """Device d of a program computes on one of the `each` cores of the host `hosts[d]`."""

    hosts: tuple[int, ...]
    each: int


@dataclass(frozen=True, slots=True)
class Shared:
    """`paths[c]`: the shared links of channel c, by number; `senders[c]`: the rank that sends over
    it; `latency[c]` the seconds at the end of a transfer in which they are free; `devices[r]`: the
    device of rank r; `cores` if devices share those of their hosts; `rings[c]`: the shared links
    of collective c, by number, and its pieces; None where it shares none."""

    paths: Sequence[tuple[int, ...]]
    senders: Sequence[int]
    latency: Sequence[float]
    devices: Sequence[int]
    cores: Cores | None = None
    rings: Sequence[NumberedRing | None] = ()

    @property
    def own(self) -> list[bool]:
        """Per channel whether what is sent over it meets nothing on its links but what the same
        rank sent before."""
        senders: dict[int, set[int]] = {}
        for path, sender in zip(self.paths, self.senders, strict=True):
            for link in path:
                senders.setdefault(link, set()).add(sender)
        for link in self._on_rings:
            senders.setdefault(link, set()).add(ON_RING)
        return [all(len(senders[link]) == 1 for link in path) for path in self.paths]

    @property
    def num_links(self) -> int:
        on_paths = (link for path in self.paths for link in path)
        return 1 + max((*on_paths, *self._on_rings), default=0)

    @property
    def _on_rings(self) -> set[int]:
        kinds = {id(ring): ring[0] for ring in self.rings if ring}
        uses = chain.from_iterable(ring.values() for ring in kinds.values())
        return {link for links in uses for link, _ in links}


def walk_in_time(plan: Waits, busy: Floats, hops: Floats, shared: Shared) -> Walked:
    """What `walk` does, with shared links and devices given to those that come first; of several
    at once the lowest rank. Each turn of a rank is one action (a receive, a compute or
    collective, a send). What a rank shares with nobody takes no turn, unless it takes no time:
    then it may free a rank that is served at this very moment. A sum whose links are shared goes
    piece by piece, so that messages come between (`sums`); one that could have begun before all
    ranks had come gets what was free then.
    """
    bounds = plan.bounds.tolist()
    needs, gives, channels = plan.needs.tolist(), plan.gives.tolist(), plan.channels.tolist()
    took, hop, alone = busy.tolist(), hops.tolist(), plan.alone.tolist()
    num_ranks = len(bounds) - 1
    at, clock = bounds[:-1], [0.0] * num_ranks
    stage = [RECEIVE] * num_ranks
    ends, starts = [0.0] * len(needs), [0.0] * len(needs)
    arrivals, posted = [NOT_YET] * plan.num_messages, [0.0] * plan.num_messages
    free = [0.0] * shared.num_links
    device_free = [0.0] * (1 + max(shared.devices, default=0))
    hosts = shared.cores.hosts if shared.cores else ()
    core_free = {host: [0.0] * (shared.cores.each if shared.cores else 0) for host in hosts}
    missing = plan.members.tolist()
    begun = [0.0] * len(missing)
    present: dict[int, list[int]] = {}
    parked: dict[int, int] = {}
    ready = [(0.0, rank) for rank in range(num_ranks)]
    sums = SharedSums(shared.rings, free)
    summing = sums.waiting
    crossed = [sums.groups(path) for path in shared.paths]
    again: tuple[float, int] | None = None
    has_own = not hosts and len(set(shared.devices)) == num_ranks
    own, paths, latency, rings = shared.own, shared.paths, shared.latency, shared.rings
    stays = False  # what a rank shares with nobody it goes on with at once, if it takes time
    while stays or again or ready:
        if not stays:
            now, rank = heappushpop(ready, again) if again else heappop(ready)
        stays, again = False, None
        node, stop = at[rank], bounds[rank + 1]
        if has_own and stage[rank] == RECEIVE:
            before, is_parked = now, False
            while node < stop and not alone[node] and (need := needs[node]) >= -1:
                if need >= 0:
                    if arrivals[need] < 0.0:
                        parked[need], is_parked = rank, True
                        break
                    if arrivals[need] > now:
                        now = arrivals[need]
                starts[node] = now
                ends[node] = now = now + took[node]
                if (give := gives[node]) >= 0:
                    channel = channels[node]
                    if not own[channel] or not hop[node]:
                        stage[rank] = SEND
                        break
                    begin, path = now, paths[channel]
                    for link in path:
                        if free[link] > begin:
                            begin = free[link]
                    posted[give], arrivals[give] = begin, (arrival := begin + hop[node])
                    held = arrival - latency[channel]
                    for link in path:
                        free[link] = held if held > begin else begin
                    if give in parked:
                        other = parked.pop(give)
                        heappush(ready, (clock[other], other))
                node += 1
            at[rank], clock[rank] = node, now
            if is_parked:
                continue
            if stage[rank] == SEND or (
                now > before and (rings or node == stop or needs[node] >= -1)
            ):
                again = now, rank
                continue
        if node == stop:
            continue
        need = needs[node]
        if stage[rank] == SUM:
            is_known, end = sums.ends(rank, now)
            if is_known:
                starts[node], ends[node], clock[rank] = begun[-2 - need], end, end
                stage[rank], at[rank] = RECEIVE, node + 1
                stays, now = has_own and end == now, end
            again = end, rank
            continue
        if stage[rank] == RECEIVE:
            if need >= 0 and arrivals[need] < 0.0:
                parked[need] = rank
                continue
            stage[rank] = SEND if alone[node] else COMPUTE
            if need >= 0:
                if arrivals[need] > now:
                    clock[rank] = arrivals[need]
                if alone[node]:
                    ends[node] = clock[rank]
                    stage[rank], at[rank] = RECEIVE, node + 1
                again = clock[rank], rank
                continue
        if stage[rank] == SEND:
            ends[node] = now
            give, channel = gives[node], channels[node]
            begin, path = now, paths[channel]
            for group in crossed[channel]:
                if summing[group]:
                    sums.settle(group, (now, rank))
            for link in path:
                if free[link] > begin:
                    begin = free[link]
            arrival = begin + hop[node]
            held = arrival - latency[channel]
            for link in path:
                free[link] = held if held > begin else begin
            posted[give], arrivals[give] = begin, arrival
            if give in parked:
                other = parked.pop(give)
                heappush(ready, (clock[other], other))
                if arrival == now:  # a lower rank may come now, after those before this one
                    sums.settle_all((now, rank))
            stage[rank], at[rank] = RECEIVE, node + 1
            stays, again = has_own and arrival > now, (now, rank)
            continue
        if need < -1:
            collective = -2 - need
            if now > begun[collective]:
                begun[collective] = now
            missing[collective] -= 1
            present.setdefault(collective, []).append(rank)
            if missing[collective]:
                continue
            sums.settle_all((now, rank))  # the parts before come before those of this sum
            if rings and (ring := rings[collective]):
                for other in sorted(present.pop(collective)):
                    is_known, end = sums.begin(other, ring, begun[collective])
                    if is_known:
                        place = at[other]
                        starts[place], ends[place], clock[other] = begun[collective], end, end
                        stage[other], at[other] = RECEIVE, place + 1
                    else:
                        stage[other] = SUM
                    heappush(ready, (end, other))
                continue
            for other in sorted(present.pop(collective)):
                place = at[other]
                starts[place] = begun[collective]
                ends[place] = clock[other] = begun[collective] + took[place]
                stage[other], at[other] = RECEIVE, place + 1
                heappush(ready, (clock[other], other))
            continue
        device = shared.devices[rank]
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
        again = clock[rank], rank
    return Walked(
        ends=np.array(ends),
        arrivals=np.array(arrivals),
        begun=np.array(begun),
        stood=at,
        starts=np.array(starts),
        posted=np.array(posted),
    )


ON_RING = -1
"""Who sends over a link of a ring: more than one."""
RECEIVE, COMPUTE, SEND, SUM = range(4)
"""What a rank does next at its node."""
