"""A row by its id, or that there is none."""

from typing import TypeVar

from sqlalchemy.orm import Session

from backend.errors import NotFound
from backend.storage.tables.node_tables import LinkTestRow
from backend.storage.tables.people_tables import PersonRow
from backend.storage.tables.tables import (
    CheckpointRow,
    DefinitionRow,
    PlanRow,
    ProfileRow,
    ProjectRow,
    RunRow,
)

NAMES: dict[type, tuple[str, str]] = {
    RunRow: ("run", "List them: stageflow runs"),
    DefinitionRow: ("definition", "List them: stageflow models"),
    ProfileRow: ("profile", "Profile a model first."),
    PlanRow: ("plan", "Make a plan first."),
    CheckpointRow: ("checkpoint", ""),
    LinkTestRow: ("link test", "Ask for one on the Nodes page."),
    ProjectRow: ("project", "List them: stageflow project list"),
    PersonRow: ("person", ""),
}
"""What people call a row, and where they find the ids that there are."""

Row = TypeVar("Row")


def look_up(session: Session, kind: type[Row], id_: int) -> Row:
    """The row of this kind with this id. Raises `NotFound`."""
    row = session.get(kind, id_)
    if row is None:
        name, advice = NAMES[kind]
        raise NotFound(f"no {name} {id_}", advice)
    return row
