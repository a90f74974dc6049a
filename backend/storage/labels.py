"""Names, notes and tags of plans, profiles and clusters, which all keep them alike."""

from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.runs.history.labels import Change, NameTaken, tags_after
from backend.storage.look_up import NAMES, look_up
from backend.storage.quotas import admit
from backend.storage.tables.cluster_tables import ClusterRow
from backend.storage.tables.tables import PlanRow, ProfileRow

Kept = TypeVar("Kept", bound=PlanRow | ProfileRow | ClusterRow)


def label(session: Session, kind: type[Kept], id_: int, change: Change) -> Kept:
    """The row, changed. Raises `NotFound`, `NameTaken`, and `InvalidInput` on too many tags."""
    row = look_up(session, kind, id_)
    if change.name is not None:
        check_free(session, kind, row.project_id, change.name, id_)
        row.name = change.name
        if isinstance(row, ClusterRow):
            row.key = change.name.casefold()
    if change.note is not None:
        row.note = change.note
    row.tags = [*tags_after(tuple(row.tags), change)]
    session.flush()
    return row


def check_free(
    session: Session, kind: type[Kept], project_id: int, name: str, but: int | None = None
) -> None:
    """Raises `NameTaken` where the project has another thing of this kind by this name, told apart
    without regard to case."""
    found = taken(session, kind, project_id, but)
    if name and name.casefold() in found:
        noun = NAMES[kind][0]
        raise NameTaken(
            f"the project has a {noun} {name!r}",
            "Choose another name, or rename or delete that one first.",
        )


def free_name(session: Session, kind: type[Kept], project_id: int, name: str) -> str:
    """`name`, or where the project has it "name (2)", "name (3)" ..."""
    found, number, free = taken(session, kind, project_id), 1, name
    while free.casefold() in found:
        number += 1
        free = f"{name} ({number})"
    return free


def taken(session: Session, kind: type[Kept], project_id: int, but: int | None = None) -> set[str]:
    """The names of a kind in the project, without their case. The project's row is locked until
    the transaction ends: of two who take one name at once the second sees the first."""
    admit(session.connection(), project_id)
    rows = session.execute(select(kind.id, kind.name).where(kind.project_id == project_id))
    return {name.casefold() for id_, name in rows if id_ != but}
