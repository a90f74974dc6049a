"""A row by its id, or that there is none; and a row as the value that it stands for."""

from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from backend.codec import from_plain
from backend.errors import NotFound, listed
from backend.storage.tables.cluster_tables import ClusterRow
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
from backend.storage.tables.team_tables import CommentRow, SweepRow, ViewRow

PROJECTS = listed("Projects", "project list")
VIEWS = listed("Runs (Views)", "views list")
NAMES: dict[type, tuple[str, str]] = {
    RunRow: ("run", listed("Runs", "runs")),
    DefinitionRow: ("model", listed("Models", "models")),
    ProfileRow: ("profile", listed("Profile", "profiles list")),
    ClusterRow: ("cluster", listed("Nodes", "clusters list")),
    PlanRow: ("plan", listed("Plan", "plans list")),
    CheckpointRow: ("checkpoint", ""),
    CommentRow: ("comment", listed("Run", "comment list RUN")),
    SweepRow: ("sweep", listed("Sweeps", "sweep list")),
    ViewRow: ("view", VIEWS),
    LinkTestRow: ("link test", "Ask for one on the page Nodes."),
    ProjectRow: ("project", PROJECTS),
    PersonRow: ("person", ""),
}
"""What people call a row, and where they find the ids that there are."""

Row = TypeVar("Row")
Value = TypeVar("Value")


def look_up(session: Session, kind: type[Row], id_: int) -> Row:
    """The row of this kind with this id. Raises `NotFound`."""
    row = session.get(kind, id_)
    if row is None:
        name, advice = NAMES[kind]
        raise NotFound(f"no {name} {id_}", advice)
    return row


def needed_by(session: Session, noun: str, user: Any, needs: ColumnElement[bool]) -> str:
    """The first five rows of `user` that need something: "run 3, 5"; "" where none does."""
    ids = session.scalars(select(user.id).where(needs).order_by(user.id).limit(6)).all()
    more = ", …" if len(ids) > 5 else ""
    return f"{noun} {', '.join(map(str, ids[:5]))}{more}" if ids else ""


def value_of(kind: type[Value], row: Any, **others: object) -> Value:
    """The row as a dataclass: each field is the column of its name, decoded where that is JSON,
    or one of `others`. Raises `InvalidInput` naming the first faulty field."""
    names = [field.name for field in fields(kind) if field.name not in others]  # type: ignore[arg-type]
    return from_plain(kind, {name: getattr(row, name) for name in names} | others)
