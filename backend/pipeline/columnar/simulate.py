"""Simulation for long programs: the same seconds as `backend.pipeline.simulate`, in arrays."""

from dataclasses import dataclass

import numpy as np

from backend.pipeline.columnar.clock import Walked, walk
from backend.pipeline.columnar.in_time import Roads, walk_in_time
from backend.pipeline.columnar.layout import Layout, layout
from backend.pipeline.columnar.seconds import seconds
from backend.pipeline.columnar.table import NUM_COMPUTES, Floats, Ints, Table, unpack
from backend.pipeline.links import Links
from backend.pipeline.replay import replay
from backend.pipeline.simulate import OWN_LINKS, Cores, Durations, simulate
from backend.pipeline.timeline import Span, Timeline


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """`start` and `end` of every row of `table`, seconds since the segment began."""

    table: Table
    start: Floats
    end: Floats

    @property
    def makespan(self) -> float:
        """Seconds from the first start to the last end (0 when empty)."""
        return float(self.end.max() - self.start.min()) if len(self.end) else 0.0

    def busy(self) -> Floats:
        """Per rank the seconds in which it computes."""
        compute = np.where(self.table.kind < NUM_COMPUTES, self.end - self.start, 0.0)
        total = np.concatenate(([0.0], np.cumsum(compute)))
        return np.asarray(np.diff(total[self.table.bounds]))

    def bubble(self) -> float:
        """The share (0 to 1) of all rank time that is waiting, as `bubbles.bubble`."""
        whole = self.makespan * (len(self.table.bounds) - 1)
        return 1.0 - float(self.busy().sum()) / whole if whole else 0.0

    def timeline(self) -> Timeline:
        """The same as spans."""
        times = zip(self.start.tolist(), self.end.tolist(), strict=True)
        return Timeline(
            tuple(
                Span(rank, index, action, *next(times))
                for rank, actions in enumerate(unpack(self.table).ranks)
                for index, action in enumerate(actions)
            )
        )


def simulate_table(
    table: Table, durations: Durations, cores: Cores | None = None, links: Links = OWN_LINKS
) -> Times:
    """When each row runs. The table must keep the verifier's rules (waiting for ever aside:
    raises `ProgramStuck`), and `durations` must be the same for all microbatches. Programs in
    which messages stand apart take the long way round."""
    plan = layout(table)
    if plan is None:
        return _long_way(table, durations, cores, links)
    took = seconds(table, durations)
    busy, hops = took[plan.rows], np.append(took, 0.0)[plan.rows + 1]
    roads = _roads(table, plan, cores, links)
    walked = walk_in_time(plan, busy, hops, roads) if roads else walk(plan, busy, hops)
    if walked.stuck:
        for _ in replay(unpack(table)):
            pass
        raise AssertionError("the readable replay does not stand still, the fast one does")
    return _times(table, plan, walked)


def _roads(table: Table, plan: Layout, cores: Cores | None, links: Links) -> Roads | None:
    """None where nobody shares a wire, a device or a core with others."""
    pairs = [divmod(pair, table.shape.num_ranks) for pair in plan.pairs.tolist()]
    paths = [links.path(source, to) for source, to in pairs]
    latency = [links.latency(source, to) for source, to in pairs]
    names = {name: number for number, name in enumerate({n: None for path in paths for n in path})}
    shared = len(names) < sum(map(len, paths)) or any(latency)
    if not shared and cores is None and table.shape.lanes == 1:
        return None
    devices = [table.shape.device_of(rank) for rank in range(table.shape.num_ranks)]
    wires = [tuple(names[name] for name in path) for path in paths]
    return Roads(wires, latency, devices, cores)


def _times(table: Table, plan: Layout, walked: Walked) -> Times:
    """Spans from the ends of nodes: what starts when the node before it ends, or when its
    message is there; a transfer when its wire is free."""
    start, end = np.zeros(table.num_actions), np.zeros(table.num_actions)
    free = np.concatenate(([0.0], walked.ends))[:-1]
    free[plan.bounds[:-1][np.diff(plan.bounds) > 0]] = 0.0
    begin, needs = free.copy(), plan.needs
    waits, meets = needs >= 0, needs < -1
    begin[waits] = np.maximum(free[waits], walked.arrivals[needs[waits]])
    begin[meets] = walked.begun[-2 - needs[meets]]
    receive = plan.rows[waits] - 1
    start[receive], end[receive] = free[waits], begin[waits]
    start[plan.rows] = begin if walked.starts is None else walked.starts
    end[plan.rows] = walked.ends
    gives = plan.gives >= 0
    send, messages = plan.rows[gives] + 1, plan.gives[gives]
    end[send] = walked.arrivals[messages]
    if walked.posted is None:
        start[send] = _wire_starts(plan.wires[gives], walked.ends[gives], end[send])
    else:
        start[send] = walked.posted[messages]
    return Times(table, start, end)


def _wire_starts(wire: Ints, posted: Floats, arrival: Floats) -> Floats:
    """A transfer starts when it is posted, or when the one before it on its wire is done."""
    order = np.argsort(wire, kind="stable")
    before = np.zeros(len(wire))
    same = wire[order][1:] == wire[order][:-1]
    before[order[1:][same]] = arrival[order[:-1][same]]
    return np.asarray(np.maximum(posted, before))


def _long_way(table: Table, durations: Durations, cores: Cores | None, links: Links) -> Times:
    spans = simulate(unpack(table), durations, links, cores).spans
    return Times(
        table, np.array([span.start for span in spans]), np.array([span.end for span in spans])
    )
