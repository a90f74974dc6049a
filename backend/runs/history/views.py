"""Filters of the list of runs, kept by name: for oneself, or for everybody in the project."""

from dataclasses import dataclass, field
from datetime import datetime

from backend.errors import InvalidInput, StageflowError
from backend.runs.history.listing import RunFilter, RunOrder

MAX_NAME = 80
MAX_VIEWS = 100
"""Characters of a name, and how many somebody has in a project."""


class ViewNameTaken(StageflowError):
    """There is a view of this name already."""


@dataclass(frozen=True, slots=True)
class ListView:
    """Which runs are listed, in which order; `columns` by their headings, () = the usual ones."""

    wanted: RunFilter = field(default_factory=RunFilter)
    order: RunOrder = field(default_factory=RunOrder)
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SavedView:
    """`owner` is who keeps it for themselves; "" where it is shared in its project."""

    id: int
    project_id: int
    owner: str
    name: str
    view: ListView
    created_at: datetime

    @property
    def is_shared(self) -> bool:
        return not self.owner


def view_name(name: str) -> str:
    """Without the space around it. Raises `InvalidInput`."""
    found = name.strip()
    if not (found.isprintable() and 0 < len(found) <= MAX_NAME):
        raise InvalidInput(
            f"{name!r:.100} cannot name a view", f"Use 1 to {MAX_NAME} characters in one line."
        )
    return found
