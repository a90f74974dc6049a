"""Projects: what models, plans and runs belong to, and who may do what with them."""

from dataclasses import dataclass, field
from datetime import datetime

from backend.errors import StageflowError
from backend.people.rights import Role

DEFAULT_PROJECT = 1
"""The project that there is from the first day. Roles of the team hold in it."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What a project may have at once; None = as much as there is.

    running   live runs
    devices   devices of the nodes that its live runs hold
    queued    queued runs
    bytes     of uploaded files, of the files that its runs keep and of their checkpoints
    share     of free devices compared with other projects: 2 gets twice as many as 1
    """

    running: int | None = None
    devices: int | None = None
    queued: int | None = None
    bytes: int | None = None
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Retention:
    """How long ended runs keep their logs, timelines and checkpoints: `days` (None = for ever),
    or longer for the newest `last` runs, and for those with a star where `starred`."""

    days: int | None = None
    last: int = 0
    starred: bool = True


@dataclass(frozen=True, slots=True)
class Project:
    """Nothing new comes into an archived one."""

    id: int
    name: str
    archived: bool
    created_at: datetime
    quota: Quota = field(default_factory=Quota)
    retention: Retention = field(default_factory=Retention)


@dataclass(frozen=True, slots=True)
class Member:
    """A person with the role that they have in one project."""

    name: str
    role: Role


class ProjectArchived(StageflowError):
    """Something new was to come into a project that is archived."""

    advice = (
        "Choose another project, or restore this one (page Projects, or stageflow project restore "
        "NAME)."
    )


class QuotaReached(StageflowError):
    """A project would have more than it may have at once."""

    advice = "Wait, delete what is not needed, or ask an administrator for a larger quota."
