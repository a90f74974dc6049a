"""Every page in the states worth looking at, and a dashboard that shows them."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from playwright.sync_api import Page, expect

from backend.bootstrap import Backend
from backend.people.person import Scope
from backend.people.project import Quota
from backend.people.rights import Role
from tests.app.seed import Seeded, settings
from tests.e2e.conftest import healthz, settled
from tests.ports import free_port

PATIENCE = 240_000  # milliseconds; a loaded machine is slow, not wrong


@dataclass(frozen=True, slots=True)
class Stop:
    """`path` may name ids of `Seeded`; `shows` is what stands there once the page is drawn, `ends`
    what stands there while it searches, and `acts` what is done there before a picture."""

    name: str
    path: str
    shows: str
    ends: str = ""
    acts: Callable[[Page], object] | None = None


EMPTY = (
    Stop("start-empty", "start", "in four steps"),
    Stop("help", "help", "The terms of the pages"),
    Stop("models-empty", "models", "No model yet"),
    Stop("profile-empty", "profile", "No profile yet"),
    Stop("plan-empty", "plan", "No profile yet"),
    Stop("schedules-empty", "schedules", "No profile yet"),
    Stop("what-if-empty", "what_if", "No profile yet"),
    Stop("runs-empty", "runs", "No run yet"),
    Stop("run-empty", "run", "No run yet"),
    Stop("compare-empty", "compare", "No training run yet"),
    Stop("launch-empty", "launch", "No saved plan yet"),
    Stop("nodes-empty", "nodes", "No node yet"),
)
SEEDED = (  # with what tests/app/seed.py writes: a run in each state
    Stop("start", "start", "in four steps"),
    Stop("models", "models", "Upload"),
    Stop("profile", "profile", "Layers"),
    Stop("plan", "plan", "Why this one"),
    Stop("schedules", "schedules", "Weight versions and staleness"),
    Stop("what-if", "what_if", "What if", ends="clusters planned"),
    Stop("runs", "runs", "Profiles and trainings of the team"),
    Stop("run-profile", "run?id={profiled}", "The profile is ready"),
    Stop("run-succeeded", "run?id={succeeded}", "Measured above predicted"),
    Stop("run-failed", "run?id={failed}", "the loss is nan"),
    Stop("run-cancelled", "run?id={cancelled}", "cancelled"),
    Stop("run-running", "run?id={running}", "Measured above predicted"),
    Stop("run-queued", "run?id={queued}", "queued"),
    Stop("run-unknown", "run?id=999", "no run 999"),
    Stop("compare", "compare?runs={succeeded},{running}", "Summary"),
    Stop("compare-nothing", "compare", "Compare"),
    Stop("launch", "launch", "Values"),
    Stop("launch-again", "launch?run={succeeded}", "Values"),
    Stop("nodes", "nodes", "Held devices"),
)


TEAM = (  # where people sign in
    Stop("account", "account", "Browsers"),
    Stop("people", "people", "Audit log"),
    Stop("projects", "projects", "New project"),
    Stop("project", "projects?id=2", "Members"),
)
DRAWN = """() => [...document.querySelectorAll('[data-testid=stPlotlyChart]')].every(
    (chart) => chart.querySelector('.main-svg')
  ) && [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')].every(
    (box) => [box, ...box.querySelectorAll('*')].some((one) => one.shadowRoot)
  )"""
COOKIE = "stageflow"
PASSWORD = "nine quiet stages"


def a_team(backend: Backend) -> str:
    """People of every role, one of them invited and one who may not come in any more, and a
    token; the secret of the admin's browser."""
    for name, role in (("Ed", Role.EDITOR), ("Vera", Role.VIEWER), ("Grace", Role.EDITOR)):
        backend.team.add(name, role)
    backend.team.change("Vera", disabled=True)
    _, link = backend.team.add("Ada", Role.ADMIN)
    project = backend.projects.add("Speech")
    backend.projects.set_role(project.id, "Ed", Role.ADMIN)
    backend.projects.set_role(project.id, "Grace", Role.VIEWER)
    backend.projects.limit(project.id, Quota(running=2, devices=8, share=2.0))
    secret = backend.accounts.accept(link, "", PASSWORD)
    found = backend.accounts.person(secret)
    assert found
    backend.acting(found[0].actor()).tokens.add("cluster job", Scope.WRITE, 90)
    return secret


def visit(page: Page, url: str, stop: Stop, found: Seeded | None = None) -> None:
    """Go there and wait until the page has ended what it does, and stands."""
    path = stop.path.format(**asdict(found)) if found else stop.path
    page.goto(f"{url}/{path}")
    expect(settled(page).get_by_text(stop.shows).first).to_be_visible(timeout=PATIENCE)
    if stop.ends:
        expect(page.get_by_text(stop.ends)).to_have_count(0, timeout=4 * PATIENCE)
    stands(page)


def stands(page: Page) -> None:
    """Nothing of it waits, is being drawn again or stands for what is to come."""
    expect(page.locator("[data-stale=true]")).to_have_count(0, timeout=PATIENCE)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=PATIENCE)
    page.wait_for_function(DRAWN, timeout=PATIENCE)
    settled(page)


@contextmanager
def dashboard(home: Path, **variables: str) -> Iterator[str]:
    """The address of the pages on this home, without an agent; `variables` are settings."""
    port = free_port()
    with settings(home, STAGEFLOW_PORT=str(port), **variables):
        server = subprocess.Popen([sys.executable, "-m", "app.asgi"])
        try:
            _await(f"http://127.0.0.1:{port}", server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=120)


def _await(url: str, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 240
    while True:
        try:
            healthz(url)
            return
        except OSError:
            assert server.poll() is None, "the dashboard ended"
            assert time.monotonic() < deadline, "the dashboard did not start"
            time.sleep(0.1)
