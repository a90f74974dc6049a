"""Other nodes in the place of those that went away under a run on several hosts."""

from collections.abc import Sequence
from dataclasses import replace

from backend.errors import InvalidInput
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import Share, does, settled, shares
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.run import Run
from backend.services.runs.stores import Stores
from backend.services.runs.survival import survived
from backend.storage.nodes.holdings import Taken


def placed(run: Run, stores: Stores, asking: str = "") -> RunSpec:
    """What a queued run is asked for, with the nodes that its next attempt may take, by a plan for
    fewer where some stay away; `asking` is the node that would like to carry it. A run that was not
    begun yet waits for its own nodes."""
    spec = run.asked
    if run.attempt == 0 or not isinstance(spec, TrainSpec) or not spec.nodes:
        return spec
    newest = stores.checkpoints.newest(run) if asking else None
    leader = asking if newest is not None and newest.is_here else ""
    taken, nodes = stores.holdings.taken(), stores.nodes.list()
    spec = replace(spec, nodes=stood_in(spec, nodes, taken, leader))
    return survived(run, spec, nodes, stores, asking)


def stood_in(
    spec: TrainSpec, nodes: Sequence[Node], taken: Taken, leader: str = ""
) -> tuple[str, ...]:
    """The nodes of `spec`, where each one that is not alive has made room for one that is, has
    the same devices, and those that the run needs are not taken; it stays where there is none.
    Only `leader` takes the place of the one that leads, because the checkpoint may lie there
    alone."""
    try:
        wanted = shares(spec, nodes)
    except InvalidInput:  # one that left by itself: nobody knows what it had
        return spec.nodes
    there, leading = {node.name: node for node in nodes}, wanted[0].node
    alive = sorted(node.name for node in nodes if node.alive)
    leader = "" if there[leading].alive else leader
    needed = {share.node: share for share in wanted}
    chosen = list(spec.nodes)
    for place, name in enumerate(chosen):
        others = [leader] if name == leading else [other for other in alive if other != leader]
        for other in () if there[name].alive else others:
            if other not in alive or other in chosen:
                continue
            if _fits(there[other], there[name], needed.get(name), taken, spec.whole_nodes):
                chosen[place] = other
                break
    return tuple(chosen)


def away(run: Run, stores: Stores) -> str:
    """Which of a run's nodes are not alive, and what to do, for people; "" where all are."""
    alive = {node.name for node in stores.nodes.alive()}
    named = run.spec.nodes if isinstance(run.spec, TrainSpec) else ()
    missing = ", ".join(name for name in named if name not in alive)
    if not missing:
        return ""
    others = (
        "; a free node with the same devices can replace it (a leader if it has the checkpoints)"
    )
    return f"{missing} is not alive. Start its agent{others if run.attempt else ''}"


def _fits(one: Node, other: Node, share: Share | None, taken: Taken, whole: bool) -> bool:
    """Would `one` do in the place of `other`, which would have had that share?"""
    if len(one.devices) != len(other.devices) or not all(map(does, one.devices, other.devices)):
        return False
    there = taken.get(one.name, ())
    return share is None or settled(share, one.devices, there, whole) is not None
