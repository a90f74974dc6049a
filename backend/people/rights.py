"""Who may do what: three roles, three rights, and the one table that joins them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a person is to the team."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


class Right(StrEnum):
    """VIEW: see everything the team has. EDIT: add, launch, change, delete. MANAGE: decide
    about people, and read who did what."""

    VIEW = "view"
    EDIT = "edit"
    MANAGE = "manage"


RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.VIEWER: frozenset({Right.VIEW}),
    Role.EDITOR: frozenset({Right.VIEW, Right.EDIT}),
    Role.ADMIN: frozenset(Right),
}


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts. `person_id` is None for whoever holds the machine itself: the command line, an
    agent, and everybody where nobody has to sign in. `rights` are those of the role, or fewer
    where a token gives fewer."""

    name: str
    role: Role
    rights: frozenset[Right]
    person_id: int | None = None

    def may(self, right: Right) -> bool:
        return right in self.rights


def operator(name: str) -> Actor:
    """Whoever holds the machine: the database is open to them anyway."""
    return Actor(name, Role.ADMIN, RIGHTS[Role.ADMIN])
