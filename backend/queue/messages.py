"""What goes through the queue: the id of a run, to the queue of one node."""

RUN = "stageflow.run"
"""Task name; its one argument is a run's id."""


def queue_name(node: str) -> str:
    """The queue that one node's agent consumes."""
    return f"node.{node}"
