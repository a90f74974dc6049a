"""Nodes and pools: the machines that run jobs, and who waits for them."""

from app.api.caller import CurrentCaller
from app.api.operation import router as operations
from backend.runs.dispatch.nodes import Node
from backend.runs.history.listing import QueuedRun
from backend.runs.pools.pool import Pool
from backend.services.runs.occupancy import queue

router = operations()


@router.get("/nodes")
def list_nodes(caller: CurrentCaller) -> list[Node]:
    """Every node, the freshest sign of life first."""
    return list(caller.services().nodes.list())


@router.get("/pools")
def list_pools(caller: CurrentCaller) -> list[Pool]:
    """Every cluster whose jobs carry runs, with what it has and what of it is free."""
    return list(caller.services().pools.list())


@router.get("/queue")
def get_queue(caller: CurrentCaller) -> list[QueuedRun]:
    """The runs that wait, in the order in which they start, each with its reason."""
    return queue(caller.services().runs)
