"""What goes through the queue: the id of a run, or a wake-up, to the queue of one node."""

from backend.errors import StageflowError

RUN = "stageflow.run"
"""Task name; its one argument is a run's id."""
LOOK = "stageflow.look"
"""Task name without arguments: there is something in the database for this node."""


class QueueUnreachable(StageflowError):
    """The queue does not answer; runs stay stored and start when an agent looks for them."""


def queue_name(node: str) -> str:
    """The queue that one node's agent consumes."""
    return f"node.{node}"
