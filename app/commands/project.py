"""`stageflow project`: what belongs together, and who works on it."""

from dataclasses import replace
from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.terminal import out, print_json, print_table
from backend.people.project import Project, Quota, Retention
from backend.people.rights import Role

app = typer.Typer(
    help="Projects: what belongs together, who works on it, what it may use.\n\n"
    "STAGEFLOW_PROJECT=NAME chooses the one in which the other commands work.",
    no_args_is_help=True,
)
Name = Annotated[str, typer.Argument(help="The project's name or number.")]
Person = Annotated[str, typer.Argument(help="The name with which the person signs in.")]
NONE = -1
"""On the command line: no limit."""
Limit = Annotated[int | None, typer.Option(min=NONE, help="-1 = no limit.")]


@app.command("list")
def list_projects(as_json: Json = False) -> None:
    """List the projects."""
    projects = connect().projects.list()
    if as_json:
        return print_json(list(projects))
    rows = [
        [p.id, p.name, "archived" if p.archived else "", formats.ago(p.created_at)]
        for p in projects
    ]
    return print_table("", ["id", "name", "", "made"], rows)


@app.command()
def add(name: Annotated[str, typer.Argument(help="The new project's name.")]) -> None:
    """Make a project.

    Example:

        stageflow project add vision
    """
    made = connect().projects.add(name)
    out.print(f"created project {made.id}: {made.name}")


@app.command()
def rename(name: Name, new: Annotated[str, typer.Argument(help="Its new name.")]) -> None:
    """Give a project another name."""
    projects = connect().projects
    out.print(f"renamed to {projects.rename(projects.named(name).id, new).name}")


@app.command()
def members(name: Name, as_json: Json = False) -> None:
    """List who belongs to a project; the administrators of the team belong to all."""
    projects = connect().projects
    found = projects.members(projects.named(name).id)
    if as_json:
        return print_json(list(found))
    return print_table("", ["name", "role"], [[m.name, m.role.value] for m in found])


@app.command()
def member(
    name: Name, person: Person, role: Annotated[Role, typer.Option(help="Their role.")]
) -> None:
    """Give a person a role in a project.

    Example:

        stageflow project member vision ada --role editor
    """
    projects = connect().projects
    projects.set_role(projects.named(name).id, person, role)
    out.print(f"{person} is {role.value} of {name}")


@app.command()
def dismiss(name: Name, person: Person) -> None:
    """Remove a person from a project. What they created is kept."""
    projects = connect().projects
    projects.set_role(projects.named(name).id, person, None)
    out.print(f"{person} is no longer a member")


@app.command()
def archive(name: Name) -> None:
    """Archive a project: its contents are kept, nothing new can be added."""
    _archive(name, True)


@app.command()
def restore(name: Name) -> None:
    """Restore an archived project."""
    _archive(name, False)


def _archive(name: str, archived: bool) -> None:
    projects = connect().projects
    done = projects.archive(projects.named(name).id, archived)
    out.print(f"{done.name} is {'archived' if archived else 'open'}")


@app.command()
def limit(
    name: Name,
    running: Limit = None,
    devices: Limit = None,
    queued: Limit = None,
    size: Annotated[int | None, typer.Option("--bytes", min=NONE, help="-1 = no limit.")] = None,
    share: Annotated[float | None, typer.Option(help="Of free devices, against 1.")] = None,
) -> None:
    """Set the limits of a project; without options print them.

    Example:

        stageflow project limit vision --running 2 --devices 8 --share 2
    """
    projects = connect().projects
    project = projects.named(name)
    given = {"running": running, "devices": devices, "queued": queued, "bytes": size}
    changes = {k: None if v == NONE else v for k, v in given.items() if v is not None}
    if changes or share is not None:
        quota = replace(project.quota, **changes, share=share or project.quota.share)
        project = projects.limit(project.id, quota)
    _tell_quota(project)


def _tell_quota(project: Project) -> None:
    quota: Quota = project.quota
    size = "no limit" if quota.bytes is None else formats.size(quota.bytes)
    pairs = [("running", quota.running), ("devices", quota.devices), ("queued", quota.queued)]
    rows = [[k, "no limit" if v is None else v] for k, v in pairs]
    print_table(project.name, ["", ""], [*rows, ["bytes", size], ["share", f"{quota.share:g}"]])


@app.command()
def retain(
    name: Name,
    days: Annotated[int | None, typer.Option(min=NONE, help="-1 = for ever.")] = None,
    last: Annotated[int | None, typer.Option(min=0, help="Newest runs to keep in full.")] = None,
    starred: Annotated[
        bool | None, typer.Option(help="Whether starred runs are kept in full.")
    ] = None,
) -> None:
    """Set how long ended runs keep logs, timelines and checkpoints; without options print it.

    Example:

        stageflow project retain vision --days 30 --last 20
    """
    projects = connect().projects
    project = projects.named(name)
    before = project.retention
    kept = Retention(
        before.days if days is None else None if days == NONE else days,
        before.last if last is None else last,
        before.starred if starred is None else starred,
    )
    if kept != before:
        projects.retain(project.id, kept)
    rows: list[list[object]] = [
        ["days", "for ever" if kept.days is None else kept.days],
        ["newest runs kept in full", kept.last],
        ["starred runs kept in full", "yes" if kept.starred else "no"],
    ]
    print_table(project.name, ["", ""], rows)


@app.command()
def clean(
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Delete, instead of only listing.")
    ] = False,
) -> None:
    """Delete what the rules of retention say: logs, timelines and checkpoints of old runs.

    Without --yes it only lists the runs. Node agents delete every hour.
    """
    retention = connect().retention
    if yes:
        return out.print(f"cleared {formats.count(len(retention.clean()), 'run')}")
    due = retention.due()
    for project, ids in due:
        numbers = ", ".join(map(str, ids))
        out.print(f"{project.name}: {formats.count(len(ids), 'run')}: {numbers}", soft_wrap=True)
    return None if due else out.print("Nothing to delete.")
