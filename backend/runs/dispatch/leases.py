"""What one process at a time may do: the reaper's work, being the agent of a node's name."""

from backend.errors import StageflowError

REAPER = "reaper"
"""Who holds it gives up the runs of lost agents."""


class NodeTaken(StageflowError):
    """Another agent, of another home or machine, goes by a node's name."""
