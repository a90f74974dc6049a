"""Every role on every page, route and command: exactly what the tables of docs/sign-in.md say."""

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from app import cli
from app.api.catalog import OPERATIONS, PREFIX
from app.api.operation import Operation
from app.commands.acting import TokenUnknown
from app.gate.rules import Rule, rule_for
from app.state import Page
from backend.bootstrap import Backend
from backend.cluster.document import write_cluster
from backend.codec import to_plain
from backend.errors import NotFound, StageflowError
from backend.people.audit import NotAllowed
from backend.people.person import Person, Scope
from backend.people.rights import Role
from backend.planning.plan import Plan
from backend.profiles.profile import Profile
from tests.api.asking import JSON, ask
from tests.api.conftest import serving
from tests.app import seed

ROOT = Path(__file__).parents[2]
PASSWORD = "nine quiet stages"
WHO = ("nobody", "outsider", "viewer", "editor", "admin", "team")
MACHINES = {"up", "demo", "worker", "doctor", "db upgrade", "db current"}
MACHINES |= {"backup", "restore", "move", "simulate"}
"""Commands that ask for no role: they need the machine itself, or nothing."""


def tables() -> Iterator[tuple[str, dict[str, dict[str, str]]]]:
    """By the first word of its heading, each table: name -> who -> what they get."""
    rows = re.findall(r"^\| (.+) \|$", (ROOT / "docs" / "sign-in.md").read_text(), re.MULTILINE)
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


@dataclass(frozen=True, eq=False)
class Place:
    """A server over a project that all are members of but the outsider."""

    url: str
    backend: Backend
    inside: Backend
    found: seed.Seeded
    people: dict[str, Person]

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

    def ended(self) -> int:
        """A run that may be lost."""
        return self.inside.runs.cancel(self.inside.runs.retry(self.found.failed).id).id


@pytest.fixture(scope="module")
def place(module_home: Path) -> Iterator[Place]:
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
            backend.projects.seat(vision.id, known[0].name, role)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAGEFLOW_SIGN_IN", "accounts")
        patch.setenv("STAGEFLOW_RATE", "0")
        with serving() as url:
            yield Place(url, backend, inside, found, people)
    backend.close()


def bodies(place: Place) -> dict[str, object]:
    """What each operation takes; those that are not here take nothing."""
    stored = place.inside.plans.get(place.found.plan)
    planned = {"profile_id": place.found.profile, "cluster": write_cluster(stored.cluster)}
    plan = planned | {"plan": to_plain(Plan, stored.plan)}
    profile = to_plain(Profile, place.inside.profiles.get(place.found.profile).profile)
    vision = place.inside.access.home
    return {
        "add_definition": {"zoo": "mlp", "project_id": vision},
        "add_profile": {"definition_id": place.found.definition, "profile": profile},
        "propose_plans": planned,
        "predict_plan": plan,
        "save_plan": plan,
        "submit_run": {"spec": {"kind": "profile", "definition_id": place.found.definition}},
        "label_run": {"starred": True},
        "resume_run": {},
        "add_project": {"name": "Third"},
        "change_project": {"name": "Borealis"},
        "seat_member": {"name": "the viewer", "role": "viewer"},
    }


def path_of(operation: Operation, place: Place) -> str:
    run = {
        "cancel_run": place.found.queued,
        "get_artifact": place.found.succeeded,
        "get_timeline": place.found.succeeded,
        "get_metric": place.found.succeeded,
        "delete_run": place.found.failed,
    }
    numbers = {
        "definitions": place.found.definition,
        "profiles": place.found.profile,
        "plans": place.found.plan,
        "projects": place.inside.access.home,
        "runs": run.get(operation.name, place.found.failed),
    }
    number = numbers.get(operation.group, 0)
    files = place.inside.runs.artifacts(place.found.succeeded)
    name = files[0].name if operation.name == "get_artifact" and files else "loss"
    path = operation.path.replace("{id:int}", str(number))
    return PREFIX + path.replace("{name:path}", name).replace("{name}", name)


def test_every_page_route_and_command_has_one_line() -> None:
    assert set(TABLES["pages"]) == {page.path for page in Page}
    assert set(TABLES["routes"]) == {operation.name for operation in OPERATIONS}
    assert set(TABLES["commands"]) == set(commands()) - MACHINES
    told = (ROOT / "docs" / "sign-in.md").read_text()
    assert all(f"`{name}`" in told for name in MACHINES)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_routes(place: Place, operation: Operation, who: str) -> None:
    said = TABLES["routes"][operation.name][who]
    path = path_of(operation, place)
    if operation.name == "delete_run" and said == "yes":
        path = f"{PREFIX}/runs/{place.ended()}"
    body = bodies(place).get(operation.name)
    data = None if body is None else orjson.dumps(body)
    headers = place.cookie(who) | (JSON if data is not None else {})
    answer = ask(place.url, path, operation.method, data, headers)
    told = (answer.status, answer.body[:300])
    if said in REFUSALS:
        assert answer.status == REFUSALS[said], told
    else:
        assert answer.status < 500, told
        assert answer.status not in REFUSALS.values(), told
        empty = answer.body in (b"[]", b'{"runs":[],"total":0}')
        assert empty or said == "yes", told


REFUSALS = {"sign in": 401, "no": 403, "not found": 404}


def commands() -> list[str]:
    return list(_commands(cli.app))


def _commands(group: typer.Typer, before: str = "") -> Iterator[str]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield before + (command.name or command.callback.__name__.replace("_", "-"))
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from _commands(inner.typer_instance, f"{inner.name} ")


def arguments(place: Place) -> dict[str, list[str]]:
    """What each command is given behind its name."""
    run, queued = str(place.found.failed), str(place.found.queued)
    profile, project = str(place.found.profile), str(place.inside.access.home)
    groups: tuple[tuple[str, list[str]], ...] = (
        ("models, runs, project list", ["--json"]),
        ("show, logs, attempts, export", [run]),
        ("plan, compare", ["--profile", profile, "--devices", "2"]),
        ("project members, project limit, project retain", [project]),
        ("project archive, project restore", [project]),
        ("user invite, user disable, user enable", ["the viewer"]),
    )
    return {
        **{name: given for names, given in groups for name in names.split(", ")},
        "profile": ["vgg_digits", "--fresh"],
        "run": ["--plan", str(place.found.plan), "--detach"],
        "cancel": [queued],
        "resume": [run, "--detach"],
        "delete": [run, "--yes"],
        "project rename": [project, "Borealis"],
        "project member": [project, "the viewer", "--role", "viewer"],
        "project dismiss": [project, "the outsider"],
        "project add": ["Fourth"],
        "user add": ["Somebody"],
        "user role": ["the viewer", "guest"],
    }


class Followed(Exception):
    """The command got as far as waiting for its run."""


def _follow(*_: object) -> None:
    raise Followed


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", sorted(TABLES["commands"]))
def test_commands(place: Place, name: str, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.commands.jobs.node_agent", lambda _: nullcontext())
    monkeypatch.setattr("app.commands.jobs.follow", _follow)
    said = TABLES["commands"][name][who]
    given = arguments(place).get(name, [])
    if name == "delete" and said == "yes":
        given = [str(place.ended()), "--yes"]
    monkeypatch.setenv("STAGEFLOW_TOKEN", place.token(who))
    if name == "profile":
        monkeypatch.setenv("STAGEFLOW_PROJECT", str(place.inside.access.home))
    result = CliRunner().invoke(cli.app, [*name.split(), *given])
    fault = result.exception
    if who == "nobody":
        assert isinstance(fault, TokenUnknown)
    elif said == "no":
        assert isinstance(fault, NotAllowed), (fault, result.output)
    elif said == "not found":
        assert isinstance(fault, NotFound), (fault, result.output)
    else:
        assert fault is None or isinstance(fault, Followed | StageflowError), fault
        assert not isinstance(fault, NotAllowed | NotFound), fault
        assert ("vgg_digits@" in result.output or "Borealis" in result.output) <= (said == "yes")


Sign = Callable[[str], None]


@pytest.fixture
def signed(place: Place, monkeypatch: pytest.MonkeyPatch) -> Sign:
    def sign(who: str) -> None:
        cookies = {"stageflow": place.secret(who)}
        monkeypatch.setattr(
            "streamlit.runtime.context.ContextProxy.cookies", property(lambda _: cookies)
        )

    return sign


VISITS = [(page, who) for page in Page for who in ("outsider", "viewer")]
VISITS += [(Page.PEOPLE, who) for who in ("editor", "admin", "team")]


@pytest.mark.parametrize(("page", "who"), VISITS)
def test_pages(place: Place, signed: Sign, page: Page, who: str) -> None:
    said = TABLES["pages"][page.path][who]
    signed(who)
    app = AppTest.from_file(ROOT / "app" / "main.py", default_timeout=60).run()
    if said == "no":  # it is not even in the navigation
        with pytest.raises(ValueError, match="Could not find a navigation page"):
            app.switch_page(page.value)
        return
    app.switch_page(page.value)
    if page is Page.RUN:
        app.query_params["id"] = str(place.found.failed)
    app.run()
    assert not app.exception
    kinds: tuple[Any, ...] = (app.title, app.markdown, app.caption, app.error, app.button)
    written = "\n".join(
        str(getattr(each, "label", "") or each.value) for kind in kinds for each in kind
    )
    assert "may not" not in written
    assert said != "nothing" or "broken loss" not in written
    assert said != "nothing" or "Borealis" not in written


@pytest.mark.parametrize("page", Page)
def test_pages_are_for_those_who_have_signed_in(page: Page) -> None:
    """That the gate does what its table says is tested in test_gate_of_pages.py."""
    assert TABLES["pages"][page.path]["nobody"] == "sign in"
    assert rule_for(f"/{page.path}") is Rule.PERSON
