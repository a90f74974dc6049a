"""Other nodes in the place of those that went away under a run on several hosts."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from backend.cluster.cluster import Device
from backend.errors import InvalidInput
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import shares
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.run import Run
from backend.services.runs.stores import Stores

ENOUGH = 0.99
"""The share of a device's memory that will do: machines of one kind differ by some megabytes."""


def placed(run: Run, stores: Stores, asking: str = "") -> RunSpec:
    """What a queued run is asked for, with the nodes that its next attempt may take; `asking`
    is the node that would like to carry it. A run that was not begun yet waits for its own
    nodes."""
    spec = run.spec
    if run.attempt == 0 or not isinstance(spec, TrainSpec) or not spec.nodes:
        return spec
    newest = stores.checkpoints.newest(run) if asking else None
    leader = asking if newest is not None and newest.is_here else ""
    return replace(spec, nodes=stood_in(spec, stores.nodes.list(), stores.loads.busy(), leader))


def stood_in(
    spec: TrainSpec, nodes: Sequence[Node], busy: Collection[str], leader: str = ""
) -> tuple[str, ...]:
    """The nodes of `spec`, where each one that is not alive has made room for one that is, free,
    and has the same devices; it stays where there is none. Only `leader` takes the place of the
    one that leads, because the checkpoint may lie there alone."""
    try:
        leading = shares(spec, nodes)[0].node
    except InvalidInput:  # one that left by itself: nobody knows what it had
        return spec.nodes
    there = {node.name: node for node in nodes}
    free = sorted(node.name for node in nodes if node.alive and node.name not in busy)
    leader = "" if there[leading].alive else leader
    taken = list(spec.nodes)
    for place, name in enumerate(taken):
        others = [leader] if name == leading else [other for other in free if other != leader]
        for other in () if there[name].alive else others:
            if other in free and other not in taken and _fits(there[other], there[name]):
                taken[place] = other
                break
    return tuple(taken)


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


def _fits(one: Node, other: Node) -> bool:
    """Would `one` do in the place of `other`?"""
    equal = len(one.devices) == len(other.devices)
    return equal and all(map(_does, one.devices, other.devices))


def _does(one: Device, other: Device) -> bool:
    enough = other.memory is None or (one.memory or 0.0) >= ENOUGH * other.memory
    return (one.name, one.speed) == (other.name, other.speed) and enough
