"""Back to a run's own plan, once its nodes are there again."""

from dataclasses import replace

from backend.errors import InvalidInput
from backend.runs.attempts.going_on import returns
from backend.runs.dispatch.placement import settled, shares
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run
from backend.services.runs.stand_in import stood_in
from backend.services.runs.stores import Stores
from backend.services.runs.survival import fallback_in, stake_of


def is_outgrown(run: Run, stores: Stores) -> bool:
    """Whether a live run that goes on by a fallback, as its spec says, had better end it at its
    newest checkpoint: its own nodes, or others like them, are there and free, the same node leads,
    and what is left takes less time by its own plan, a restart included."""
    own, newest = stores.runs.get(run.id), stores.checkpoints.newest(run)
    fallback = fallback_in(own, run.spec)
    if fallback is None or newest is None or not isinstance(own.spec, TrainSpec):
        return False
    nodes, taken = stores.nodes.list(), stores.holdings.taken()
    others = {
        node: {device: by for device, by in there.items() if by != run.id}
        for node, there in taken.items()
    }
    alive = [node for node in nodes if node.alive]
    spec = replace(own.spec, nodes=stood_in(own.spec, nodes, others))
    try:
        wanted = shares(spec, alive)
    except InvalidInput:  # some are away still
        return False
    devices = {node.name: node.devices for node in alive}
    is_free = all(
        settled(share, devices[share.node], others.get(share.node, ()), spec.whole_nodes)
        for share in wanted
    )
    same = wanted[0].node == own.node
    return is_free and same and returns(stake_of(own, fallback, newest, stores))
