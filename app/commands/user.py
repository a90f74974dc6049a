"""`stageflow user`: who may sign in. Whoever holds the machine is an administrator here."""

from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.commands.serve import welcome_url
from app.naming import person_state
from app.terminal import out, print_json, print_table
from backend.bootstrap import Backend
from backend.people.rights import Role

app = typer.Typer(help="People: who may sign in, and with which role.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The name with which the person signs in.")]
Wanted = Annotated[
    Role,
    typer.Option(help="guest sees own projects only, viewer reads, editor changes, admin manages."),
]


@app.command("list")
def list_people(as_json: Json = False) -> None:
    """List everybody."""
    people = connect().team.list()
    if as_json:
        return print_json(list(people))
    rows = [[p.name, p.role.value, person_state(p), formats.ago(p.created_at)] for p in people]
    return print_table(
        formats.count(len(people), "person", "people")
        if people
        else "Nobody yet: stageflow user add",
        ["name", "role", "state", "added"],
        rows,
    )


@app.command()
def add(name: Name, role: Wanted = Role.EDITOR) -> None:
    """Invite somebody new: prints a link that lets them set a password, once.

    Examples:

        stageflow user add ada --role admin
    """
    backend = connect()
    _, link = backend.team.add(name, role)
    _tell(backend, name, link)


@app.command()
def invite(name: Name) -> None:
    """Print a new link for a person whose password is forgotten or was never set."""
    backend = connect()
    _tell(backend, name, backend.team.invite(name))


@app.command()
def role(name: Name, role: Annotated[Role, typer.Argument(help="The new role.")]) -> None:
    """Give somebody another role."""
    person = connect().team.change(name, role)
    out.print(f"{person.name} is {person.role.value}")


@app.command()
def disable(name: Name) -> None:
    """Disable an account: sessions and tokens end at once, what the person created is kept."""
    out.print(f"{connect().team.change(name, disabled=True).name} is disabled")


@app.command()
def enable(name: Name) -> None:
    """Enable an account again, with its previous password."""
    out.print(f"{connect().team.change(name, disabled=False).name} may sign in")


def _tell(backend: Backend, name: str, link: str) -> None:
    out.print(f"Give {name} this link. It works once, for 3 days:")
    out.print(welcome_url(backend.settings, link), soft_wrap=True)
