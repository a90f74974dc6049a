"""A program on a clock: the predicted timeline. It is told every duration and knows none."""

import numpy as np

from backend.pipeline.clock.durations import Durations, seconds
from backend.pipeline.clock.in_time import Cores, Shared, walk_in_time
from backend.pipeline.clock.waits import Waits, coded, sorting
from backend.pipeline.clock.walk import Walked, through, walk
from backend.pipeline.kinds import Floats, Ints
from backend.pipeline.links import Links, OwnLinks, Ring
from backend.pipeline.program import Program
from backend.pipeline.timeline import Timeline

OWN_LINKS = OwnLinks()


def simulate(
    program: Program,
    durations: Durations,
    links: Links = OWN_LINKS,
    cores: Cores | None = None,
) -> Timeline:
    """The timeline of `program`, in seconds from the start of the segment.

    An action starts as soon as its rank is free and what it waits for is there. A transfer
    keeps its links busy and not the ranks; messages between two ranks stay in order. The span
    of a send is the transfer, that of a receive the wait. Pipelines on one device compute one at
    a time, first come, first served (ours: real devices overlap small kernels a little), and
    so do devices that share `cores` (ours: a real kernel deals them out in slices; the work
    done by the end is the same). A sum keeps the links of its ring busy (`Links.ring`), and may
    have begun before all its ranks have come. `durations` must be the same for all microbatches,
    and the program must keep the verifier's rules (waiting for ever aside: raises `ProgramStuck`).
    """
    plan = program.waits
    took = seconds(program, durations)
    busy, hops = took[plan.rows], np.zeros(len(plan.rows))
    busy[plan.alone], hops[plan.gives >= 0] = 0.0, took[plan.sends]
    shared = _shared(program, plan, cores, links)
    walked = walk_in_time(plan, busy, hops, shared) if shared else walk(plan, busy, hops)
    return _timeline(program, plan, through(program, plan, walked))


def _shared(program: Program, plan: Waits, cores: Cores | None, links: Links) -> Shared | None:
    """None where nobody shares a link, a device or a core with others."""
    pairs = plan.pairs.T.tolist()
    paths = [links.path(source, to) for source, to in pairs]
    latency = [links.latency(source, to) for source, to in pairs]
    kinds, kind_of = _rings(program, plan, links)
    on_rings = (each for ring in kinds if ring for each in ring.links.values())
    uses = [*paths, *(tuple(link for link, _ in each) for each in on_rings)]
    names = {name: number for number, name in enumerate({n: None for use in uses for n in use})}
    has_shared = len(names) < sum(map(len, uses)) or any(latency)
    if not has_shared and cores is None and program.shape.num_pipelines == 1:
        return None
    devices = [program.shape.device_of(rank) for rank in range(program.num_ranks)]
    numbered = [
        (
            {
                rank: tuple((names[link], share) for link, share in each)
                for rank, each in ring.links.items()
            },
            ring.pieces,
        )
        if ring
        else None
        for ring in kinds
    ]
    return Shared(
        [tuple(names[name] for name in path) for path in paths],
        [source for source, _ in pairs],
        latency,
        devices,
        cores,
        [numbered[kind] for kind in kind_of],
    )


def _rings(program: Program, plan: Waits, links: Links) -> tuple[list[Ring | None], list[int]]:
    """The rings of the collectives of a program, of each stage and group one, and the place there
    of each collective's."""
    nodes = np.flatnonzero(plan.needs < -1)
    firsts = nodes[np.unique(-2 - plan.needs[nodes], return_index=True)[1]]
    rows = program.rows.at(plan.rows[firsts])
    code = coded(rows.kind, rows.stage, rows.peer)
    _, known, kind = np.unique(code, return_index=True, return_inverse=True)
    actions = [program.rows.action(int(plan.rows[firsts[place]])) for place in known]
    return [links.ring(action) for action in actions], kind.tolist()  # type: ignore[arg-type]


def _timeline(program: Program, plan: Waits, walked: Walked) -> Timeline:
    """Spans from the ends of nodes: what starts when the node before it ends, or when its
    message is there; a transfer when its link is free."""
    start, end = np.zeros(program.num_actions), np.zeros(program.num_actions)
    free = np.concatenate(([0.0], walked.ends))[:-1]
    free[plan.bounds[:-1][np.diff(plan.bounds) > 0]] = 0.0
    begin, needs = free.copy(), plan.needs
    waiting, collective, giving = needs >= 0, needs < -1, plan.gives >= 0
    begin[waiting] = np.maximum(free[waiting], walked.arrivals[needs[waiting]])
    begin[collective] = walked.begun[-2 - needs[collective]]
    start[plan.rows] = begin if walked.starts is None else walked.starts
    end[plan.rows] = walked.ends
    start[plan.receives], end[plan.receives] = free[waiting], begin[waiting]
    end[plan.sends] = walked.arrivals[plan.gives[giving]]
    if walked.posted is None:
        posted = walked.ends[giving]
        start[plan.sends] = _link_starts(plan.channels[giving], posted, end[plan.sends])
    else:
        start[plan.sends] = walked.posted[plan.gives[giving]]
    index = np.arange(program.num_actions) - program.bounds[program.rank]
    return Timeline(program.rank, index, program.rows, start, end)


def _link_starts(channel: Ints, posted: Floats, arrival: Floats) -> Floats:
    """A transfer starts when it is posted, or when the one before it on its channel is done."""
    order = sorting(channel)
    before = np.zeros(len(channel))
    same = channel[order][1:] == channel[order][:-1]
    before[order[1:][same]] = arrival[order[:-1][same]]
    return np.asarray(np.maximum(posted, before))
