"""What runs need from the outside: a queue that wakes agents, and a notifier."""

from typing import Protocol

from backend.errors import StageflowError
from backend.runs.run import Run

LogText = tuple[int | None, float, str]
"""Rank (None = the agent), Unix seconds, text."""


class QueueUnreachable(StageflowError):
    """The queue does not answer; runs stay stored and start when an agent looks for them."""


class Notifier(Protocol):
    """Tells people that a run has ended. It never raises and never waits."""

    def notify(self, run: Run) -> None: ...

    def close(self) -> None:
        """Wait, for a few seconds at most, until what was told has gone out."""
        ...


class Queue(Protocol):
    """Wakes a node's agent. A message that is lost costs time, never a run."""

    def publish(self, run_id: int, node: str) -> None:
        """Raises `QueueUnreachable` within about two seconds."""
        ...

    def wake(self, node: str) -> None:
        """Let the agent look into the database now; raises like `publish`."""
        ...

    def ping(self) -> None:
        """Raises `QueueUnreachable` within about two seconds."""
        ...
