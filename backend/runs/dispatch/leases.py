"""What one process at a time may do: the reaper's work, being the agent of a node's name."""

from backend.errors import StageflowError

REAPER = "reaper"
"""Who holds it gives up the runs of lost agents."""


class NodeTaken(StageflowError):
    """Another agent, of another home or machine, goes by a node's name."""


def node_lease(node: str) -> str:
    """The name of the lease on being the agent of `node`."""
    return f"node {node}"


def node_taken(node: str, holder: str, lease: float) -> NodeTaken:
    """What the agent is told that came later; `lease` in seconds."""
    return NodeTaken(
        f"the name {node} belongs to the agent of {holder}",
        "Give this agent a name of its own: STAGEFLOW_NODE. Or stop the other one; if it is dead "
        f"already, wait {lease:.0f} s.",
    )
