"""The tables of docs/guide/rights.md, and a place with somebody of every role."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import typer

from app import cli
from backend.bootstrap import Backend
from backend.cluster.presets import local
from backend.people.person import Person, Scope
from backend.people.rights import Role
from backend.runs.history.views import ListView
from backend.runs.request.spec import TrainSpec
from backend.runs.sweeps.sweep import SweepAxis, SweepSpec
from tests.app import seed
from tests.app.test_resume import stopped

ROOT = Path(__file__).parents[2]
RIGHTS = ROOT / "docs" / "guide" / "rights.md"
PASSWORD = "nine quiet stages"
WHO = ("nobody", "outsider", "viewer", "editor", "admin", "team")
MACHINES = {"up", "demo", "worker", "doctor", "db upgrade", "db current"}
MACHINES |= {"pool local", "pool slurm", "pool kubernetes", "backup", "restore", "move", "simulate"}
MACHINES |= {"tracker send", "clusters measure"}
"""Commands that ask for no role: they need the machine itself, or nothing."""


def tables() -> Iterator[tuple[str, dict[str, dict[str, str]]]]:
    """By the first word of its heading, each table: name -> who -> what they get."""
    rows = re.findall(r"^\| (.+) \|$", RIGHTS.read_text(), re.MULTILINE)
    found: dict[str, dict[str, str]] = {}
    heading = ""
    for row in rows:
        cells = [cell.strip() for cell in row.split("|")]
        if tuple(cells[1:]) == WHO:
            if heading:
                yield heading, found
            heading, found = cells[0].split()[0], {}
        elif heading:
            for name in re.findall("`([^`]+)`", cells[0]):
                assert name not in found, f"{name} has two lines"
                found[name] = dict(zip(WHO, cells[1:], strict=True))
    yield heading, found


TABLES = dict(tables())


def commands() -> list[str]:
    return list(_commands(cli.app))


def _commands(group: typer.Typer, before: str = "") -> Iterator[str]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield before + (command.name or command.callback.__name__.replace("_", "-"))
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from _commands(inner.typer_instance, f"{inner.name} ")


@dataclass(frozen=True, eq=False)
class Place:
    """A server over a project that all are members of but the outsider."""

    url: str
    backend: Backend
    inside: Backend
    found: seed.Seeded
    people: dict[str, Person]
    checkpoint: int

    def cookie(self, who: str) -> dict[str, str]:
        return {"Cookie": f"stageflow={self.secret(who)}"} if who != "nobody" else {}

    @cache  # noqa: B019 (one place for all tests)
    def secret(self, who: str) -> str:
        return self.backend.accounts.sign_in(self.people[who].name, PASSWORD)

    @cache  # noqa: B019
    def token(self, who: str) -> str:
        if who == "nobody":
            return "sf_guessed"
        scope = Scope.WRITE if who in ("editor", "admin", "team") else Scope.READ
        (person,) = [p for p in self.backend.team.list() if p.name == self.people[who].name]
        return self.backend.acting(person.actor()).tokens.add("test", scope)[1]

    def cluster(self) -> int:
        """A kept cluster that may be lost."""
        taken = len(self.inside.clusters.list())
        return self.inside.clusters.save(f"spare {taken}", local(4)).id

    def comment(self) -> int:
        """The operator's, that may be lost."""
        return self.inside.comments.add(self.found.failed, "a word").id

    def view(self) -> int:
        """A shared one that may be lost."""
        kept = [view for view in self.inside.views.list() if view.name == "spare"]
        return (kept or [self.inside.views.save("spare", ListView(), shared=True)])[0].id

    @cached_property
    def sweep(self) -> int:
        """Of one run."""
        plan = self.inside.plans.get(self.found.plan)
        base = TrainSpec(self.found.definition, plan.plan, plan.id)
        return self.inside.sweeps.start(SweepSpec(base, (SweepAxis("seed", (1,)),))).id

    def ended(self) -> int:
        """A run that may be lost."""
        return self.inside.runs.cancel(self.inside.runs.retry(self.found.failed).id).id


def peopled(url: str) -> Place:
    """With a project, and people in and outside of it."""
    backend = seed.fresh()
    vision = backend.projects.add("Borealis")
    inside = backend.within(vision.id)
    found = seed.everything(inside)
    roles = {"outsider": None, "viewer": Role.VIEWER, "editor": Role.EDITOR, "admin": Role.ADMIN}
    people = {}
    for who, role in {**roles, "team": None}.items():
        team = Role.ADMIN if who == "team" else Role.GUEST
        _, link = backend.team.add(f"the {who}", team)
        known = backend.accounts.person(backend.accounts.accept(link, "", PASSWORD))
        assert known
        people[who] = known[0]
        if role is not None:
            backend.projects.set_role(vision.id, known[0].name, role)
    (checkpoint,) = inside.runs.checkpoints.list(stopped(inside, found))
    return Place(url, backend, inside, found, people, checkpoint.id)
