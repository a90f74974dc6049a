"""Back to a run's own plan, or to one for more of its nodes, once those are there again."""

from collections.abc import Sequence
from dataclasses import replace

from backend.errors import InvalidInput
from backend.runs.attempts.going_on import returns
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import settled, shares
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run
from backend.services.runs.stand_in import stood_in
from backend.services.runs.stores import Stores
from backend.services.runs.survival import fallback_in, on_nodes_left, stake_of
from backend.storage.nodes.holdings import Taken


def is_outgrown(run: Run, stores: Stores) -> bool:
    """Whether a live run that goes on by a fallback, as its spec says, had better end it at its
    newest checkpoint: its own nodes, or others like them, or at least more of them than the
    fallback is for, are there and free, the same node leads, and what is left takes less time by
    the plan for these, a restart included."""
    own, newest = stores.runs.get(run.id), stores.checkpoints.newest(run)
    fallback = fallback_in(own, run.asked)
    if fallback is None or newest is None or not isinstance(own.spec, TrainSpec):
        return False
    nodes, taken = stores.nodes.list(), stores.holdings.taken()
    others = {
        node: {device: by for device, by in there.items() if by != run.id}
        for node, there in taken.items()
    }
    spec = replace(own.spec, nodes=stood_in(own.spec, nodes, others))
    smaller, larger = on_nodes_left(own, spec, nodes, newest)
    if smaller is None or (larger is not None and larger.count >= fallback.count):
        return False
    stake = stake_of(own, fallback, newest, stores)
    if larger is not None:
        factor = stake.factor / larger.factor
        stake = replace(stake, rate=stake.rate * larger.factor, factor=factor)
    return _is_free(smaller, own.node, nodes, others) and returns(stake)


def _is_free(spec: TrainSpec, leader: str | None, nodes: Sequence[Node], others: Taken) -> bool:
    """Whether it can start, led by the same node, on what no other run holds."""
    alive = [node for node in nodes if node.alive]
    try:
        wanted = shares(spec, alive)
    except InvalidInput:  # some are away still
        return False
    devices = {node.name: node.devices for node in alive}
    is_free = all(
        settled(share, devices[share.node], others.get(share.node, ()), spec.whole_nodes)
        for share in wanted
    )
    return is_free and wanted[0].node == leader
