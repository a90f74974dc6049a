"""Every role with every command: exactly what the table of docs/guide/rights.md says."""

from contextlib import nullcontext

import pytest
from typer.testing import CliRunner

from app import cli
from app.commands.options.acting import TokenUnknown
from backend.errors import NotFound, StageflowError
from backend.services.people.access import NotAllowed
from tests.api.matrix import ROOT, TABLES, WHO, Place

TRACES = ROOT / "tests" / "api" / "traces"


def arguments(place: Place, name: str) -> list[str]:
    """What this command is given behind its name."""
    run, queued = str(place.found.failed), str(place.found.queued)
    profile, project = str(place.found.profile), str(place.inside.access.home)
    plan = str(place.found.plan)
    spare = str(place.cluster()) if name in ("clusters label", "clusters delete") else ""
    groups: tuple[tuple[str, list[str]], ...] = (
        ("models, runs, sweep list, views list, project list", ["--json"]),
        ("plans list, profiles list, clusters list", ["--json"]),
        ("sweep show, sweep cancel", [str(place.sweep)]),
        ("show, logs, attempts, export, stacks, comment list", [run]),
        ("plan, compare", ["--profile", profile, "--devices", "2"]),
        ("project members, project limit, project retain", [project]),
        ("project archive, project restore", [project]),
        ("tracker list", [run]),
        ("tracker follow, tracker stop", [run, "tensorboard"]),
        ("user invite, user disable, user enable", ["the viewer"]),
    )
    given = {
        **{each: given for names, given in groups for each in names.split(", ")},
        "clusters save": ["ours", "dgx-h100:2"],
        "clusters label": [spare, "--name", "Monday"],
        "clusters delete": [spare, "--yes"],
        "comment add": [run, "a word"],
        "comment delete": [str(place.comment())],
        "views save": ["slow", "--shared"],
        "views delete": [str(place.view())],
        "plans diff": [plan, plan],
        "tracker import": ["0123456789abcdef", "--model", "vgg_digits"],
        "plans label": [plan, "--tag", "Monday"],
        "plans delete": [plan, "--yes"],
        "profiles import": [str(TRACES / "step.json"), "--batch", "32", "--model", "vgg_digits"],
        "profiles label": [profile, "--note", "ours"],
        "profiles delete": [profile, "--yes"],
        "program export": ["--plan", plan],
        "program synthesise": ["--plan", plan],
        "program import": [str(ROOT / "tests" / "api" / "two_ranks.txt"), "--profile", profile],
        "trace profile": [str(TRACES / "step.json"), "--batch", "32", "--model", "vgg_digits"],
        "trace compare": [*(str(TRACES / f"rank{n}.json") for n in range(2)), "--plan", plan],
        "profile": ["vgg_digits", "--fresh"],
        "run": ["--plan", plan, "--detach"],
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
    return given.get(name, [])


ADDING = frozenset(
    {"profile", "profiles import", "trace profile", "tracker import", "clusters save", "views save"}
)
"""Commands that add something to the chosen project."""


class Followed(Exception):
    """The command got as far as waiting for its run."""


def _follow(*_: object) -> None:
    raise Followed


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", sorted(TABLES["commands"]))
def test_commands(place: Place, name: str, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.commands.jobs.node_agent", lambda *_: nullcontext())
    monkeypatch.setattr("app.commands.jobs.follow", _follow)
    said = TABLES["commands"][name][who]
    given = arguments(place, name)
    if name == "delete" and said == "yes":
        given = [str(place.ended()), "--yes"]
    monkeypatch.setenv("STAGEFLOW_TOKEN", place.token(who))
    if name in ADDING:
        monkeypatch.setenv("STAGEFLOW_PROJECT", str(place.inside.access.home))
    result = CliRunner().invoke(cli.application(name.split()[0]), [*name.split(), *given])
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
