"""Nodes and pools: the machines that run jobs, and who waits for them."""

from typing import Annotated

from fastapi import Query

from app.api.caller import CurrentCaller
from app.api.operation import router as operations
from backend.errors import NotFound
from backend.runs.dispatch.nodes import Node
from backend.runs.history.listing import QueuedRun
from backend.runs.pools.pool import Pool
from backend.runs.use import UsePoint
from backend.services.runs.occupancy import queue

router = operations()
Since = Annotated[float, Query(ge=0, le=1e12)]


@router.get("/nodes")
def list_nodes(caller: CurrentCaller) -> list[Node]:
    """Every node, the most recently seen first."""
    return list(caller.services().nodes.list())


@router.get("/nodes/{name}/use")
def get_node_use(caller: CurrentCaller, name: str, since: Since = 0.0) -> list[UsePoint]:
    """What a node has used from Unix second `since` on: the machine, then each GPU; a point per
    5 s of the last half hour, per minute of 6 hours, per 10 minutes of a week."""
    services = caller.services()
    if all(node.name != name for node in services.nodes.list()):
        raise NotFound(f"no node {name!r:.100}", "GET /nodes lists them.")
    return list(services.use.of_node(name, since))


@router.get("/pools")
def list_pools(caller: CurrentCaller) -> list[Pool]:
    """Every cluster whose jobs carry runs, with what it has and what of it is free."""
    return list(caller.services().pools.list())


@router.get("/queue")
def get_queue(caller: CurrentCaller) -> list[QueuedRun]:
    """The runs that wait, in the order in which they start, each with its reason."""
    return queue(caller.services().runs)
