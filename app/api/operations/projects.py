"""Projects: made, changed, and who belongs to each."""

from dataclasses import dataclass

from app.api.caller import CurrentCaller
from app.api.fields import Id
from app.api.operation import router as operations
from backend.people.project import Member, Project, Quota, Retention
from backend.people.rights import Role

router = operations()


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
class Membership:
    """A person by their name, and their role; null takes them out."""

    name: str
    role: Role | None


@router.get("/projects")
def list_projects(caller: CurrentCaller) -> list[Project]:
    """The projects that you see, the first one first."""
    return list(caller.services().projects.list())


@router.post("/projects", status_code=201)
def add_project(caller: CurrentCaller, new: NewProject) -> Project:
    """Make a project."""
    return caller.services().projects.add(new.name)


@router.get("/projects/{id:int}")
def get_project(caller: CurrentCaller, id: Id) -> Project:
    """One project with its limits and its rule of retention."""
    return caller.services().projects.get(id)


@router.patch("/projects/{id:int}")
def change_project(caller: CurrentCaller, id: Id, asked: ProjectChange) -> Project:
    """Rename, archive, limit a project, or set its rule of retention."""
    projects = caller.services().projects
    if asked.quota is not None:  # all or nothing as far as rights go: what needs more comes first
        projects.limit(id, asked.quota)
    if asked.retention is not None:
        projects.retain(id, asked.retention)
    if asked.name is not None:
        projects.rename(id, asked.name)
    if asked.archived is not None:
        projects.archive(id, asked.archived)
    return projects.get(id)


@router.get("/projects/{id:int}/members")
def list_members(caller: CurrentCaller, id: Id) -> list[Member]:
    """Who belongs to a project; the administrators of the team belong to all."""
    return list(caller.services().projects.members(id))


@router.post("/projects/{id:int}/members")
def set_member_role(caller: CurrentCaller, id: Id, asked: Membership) -> list[Member]:
    """Give somebody a role in a project, or remove them; the answer is its members."""
    projects = caller.services().projects
    projects.set_role(id, asked.name, asked.role)
    return list(projects.members(id))
