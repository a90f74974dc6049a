"""The attempts at a run, as they are stored and shown."""

from dataclasses import dataclass
from datetime import datetime

from backend.runs.run import RunError


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """outcome    a final state, or "restarted"; None while it goes on
    error      why it ended, where it did not succeed
    first_seq  sequence number of its first log line
    step       weight updates after which it went on from a checkpoint; None = the beginning
    """

    number: int
    node: str
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    error: RunError | None
    first_seq: int
    step: int | None
