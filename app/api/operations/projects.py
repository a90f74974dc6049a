"""Projects: made, changed, and who belongs to each."""

from dataclasses import dataclass

from app.api.operation import Call, Operation
from backend.people.project import Member, Project, Quota, Retention
from backend.people.rights import Role


@dataclass(frozen=True, slots=True)
class NewProject:
    """Its name, which no other project has."""

    name: str


@dataclass(frozen=True, slots=True)
class ProjectChange:
    """What is null or absent stays as it is. `quota` is decided by administrators of the team."""

    name: str | None = None
    archived: bool | None = None
    quota: Quota | None = None
    retention: Retention | None = None


@dataclass(frozen=True, slots=True)
class Seat:
    """A person by their name, and their role; null takes them out."""

    name: str
    role: Role | None


def _change(call: Call) -> Project:
    """All or nothing as far as rights go: what needs more comes first."""
    asked: ProjectChange = call.body
    projects = call.backend.projects
    if asked.quota is not None:
        projects.limit(call.id, asked.quota)
    if asked.retention is not None:
        projects.retain(call.id, asked.retention)
    if asked.name is not None:
        projects.rename(call.id, asked.name)
    if asked.archived is not None:
        projects.archive(call.id, asked.archived)
    return projects.get(call.id)


def _seat(call: Call) -> list[Member]:
    asked: Seat = call.body
    call.backend.projects.seat(call.id, asked.name, asked.role)
    return list(call.backend.projects.members(call.id))


OPERATIONS = (
    Operation(
        "list_projects",
        "GET",
        "/projects",
        "The projects that you see, the first one first.",
        lambda call: list(call.backend.projects.list()),
        list[Project],
    ),
    Operation(
        "add_project",
        "POST",
        "/projects",
        "Make a project.",
        lambda call: call.backend.projects.add(call.body.name),
        Project,
        body=NewProject,
        status=201,
    ),
    Operation(
        "get_project",
        "GET",
        "/projects/{id:int}",
        "One project with its limits and its rule of retention.",
        lambda call: call.backend.projects.get(call.id),
        Project,
    ),
    Operation(
        "change_project",
        "PATCH",
        "/projects/{id:int}",
        "Rename, archive, limit a project, or set its rule of retention.",
        _change,
        Project,
        body=ProjectChange,
    ),
    Operation(
        "list_members",
        "GET",
        "/projects/{id:int}/members",
        "Who belongs to a project; the administrators of the team belong to all.",
        lambda call: list(call.backend.projects.members(call.id)),
        list[Member],
    ),
    Operation(
        "seat_member",
        "POST",
        "/projects/{id:int}/members",
        "Give somebody a role in a project, or take them out; its members.",
        _seat,
        list[Member],
        body=Seat,
    ),
)
