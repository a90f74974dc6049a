"""Nodes: the machines that run jobs, and who waits for them."""

from app.api.operation import Call, Operation
from backend.runs.nodes import Node
from backend.runs.occupancy import QueuedRun, queue


def _queue(call: Call) -> list[QueuedRun]:
    return queue(call.backend.runs)


OPERATIONS = (
    Operation(
        "list_nodes",
        "GET",
        "/nodes",
        "Every node, the freshest sign of life first.",
        lambda call: list(call.backend.nodes.list()),
        list[Node],
    ),
    Operation(
        "get_queue",
        "GET",
        "/queue",
        "The runs that wait, in the order in which they start, each with its reason.",
        _queue,
        list[QueuedRun],
    ),
)
