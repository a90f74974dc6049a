"""Who did what, and who was not allowed to: a log that only grows."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class AuditOutcome(StrEnum):
    """Whether it was done, or refused."""

    DONE = "done"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """`action` is a verb ("cancel"), `target` what it was done to ("run 7")."""

    id: int
    time: datetime
    actor: str
    action: str
    target: str
    outcome: AuditOutcome
