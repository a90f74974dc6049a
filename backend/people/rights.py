"""Who may do what: three roles, three rights, and the one table that joins them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a person is to the team, or to one project. GUEST: of the team, and what the projects
    say in which they are a member. An ADMIN of the team is that of every project."""

    GUEST = "guest"
    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


class Right(StrEnum):
    """VIEW: see everything that there is. EDIT: add, launch, change, delete. MANAGE: decide
    about people; in the team also about projects, and read who did what."""

    VIEW = "view"
    EDIT = "edit"
    MANAGE = "manage"


RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.GUEST: frozenset({Right.VIEW}),
    Role.VIEWER: frozenset({Right.VIEW}),
    Role.EDITOR: frozenset({Right.VIEW, Right.EDIT}),
    Role.ADMIN: frozenset(Right),
}


Visibility = frozenset[int] | None
"""The projects that somebody sees; None = all of them."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts. `person_id` is None for whoever holds the machine itself: the command line, an
    agent, and everybody where nobody has to sign in. `rights` are those in the team: of the
    role, or fewer where a token gives fewer; `projects` those in each project, None where they
    are the same in all. `token` is the name of the token by which they act, "" without one."""

    name: str
    role: Role
    rights: frozenset[Right]
    person_id: int | None = None
    projects: Mapping[int, frozenset[Right]] | None = None
    token: str = ""

    def may(self, right: Right, project: int | None = None) -> bool:
        """In a project, or, without one, in the team."""
        if project is None or self.projects is None:
            return right in self.rights
        return right in self.projects.get(project, frozenset())

    @property
    def reads_only(self) -> bool:
        """Whether there is no project in which they may change anything."""
        held = (self.rights, *(self.projects or {}).values())
        return not any(Right.EDIT in each for each in held)

    @property
    def visible(self) -> Visibility:
        return None if self.projects is None else frozenset(self.projects)


def operator(name: str) -> Actor:
    """Whoever holds the machine: the database is open to them anyway."""
    return Actor(name, Role.ADMIN, RIGHTS[Role.ADMIN])
