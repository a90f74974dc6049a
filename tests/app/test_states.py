"""Every page with nothing, with one of each thing, with many, and with a fault behind it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import event
from streamlit.testing.v1 import AppTest

from app import services
from app.session.state import Page
from backend.bootstrap import Backend
from backend.services.definitions import DefinitionService
from backend.services.people.notices import NoticeService
from backend.services.runs.plans import PlanService
from backend.services.runs.profiles import ProfileService
from backend.services.runs.runs import RunService
from backend.services.runs.sweeps import SweepService
from backend.storage.nodes.nodes import SqlNodes
from backend.storage.runs.metrics import SqlMetrics
from tests.app import seed
from tests.app.conftest import Open, visit
from tests.app.pages import button, text_of

NEEDS_A_PROFILE = (Page.PROFILE, Page.PLAN, Page.SCHEDULES, Page.WHAT_IF)
EMPTY = {
    Page.START: "in four steps",
    Page.HELP: "The terms of the pages",
    Page.MODELS: "No model yet",
    **dict.fromkeys(NEEDS_A_PROFILE, "No profile yet"),
    Page.RUNS: "No run yet",
    Page.RUN: "No run yet",
    Page.SWEEPS: "No sweep yet",
    Page.COMPARE: "No training run yet",
    Page.LAUNCH: "No saved plan yet",
    Page.NODES: "No node yet",
    Page.NOTIFICATIONS: "You get no notifications yet",
}
PAGES = tuple(EMPTY)
"""Account and people need a sign-in: test_gate_of_pages.py."""
ONE = {
    Page.START: "in four steps",
    Page.HELP: "The terms of the pages",
    Page.MODELS: "1 version",
    Page.PROFILE: "16 layers",
    Page.PLAN: "ranked by simulation",
    Page.SCHEDULES: "Side by side",
    Page.WHAT_IF: "The best plan when one thing of the cluster changes.",
    Page.RUNS: "**2 runs**",
    Page.RUN: "Measured above predicted",
    Page.SWEEPS: "No sweep yet",
    Page.COMPARE: "What differs between runs",
    Page.LAUNCH: "by plan **1**",
    Page.NODES: "node-1",
    Page.NOTIFICATIONS: "You get no notifications yet",
}
MANY = ONE | {
    Page.MODELS: "3 versions",
    Page.RUNS: "**42 runs**",
    Page.LAUNCH: "by plan **12**",
    Page.NODES: "node-8",
}
FAULTS: dict[Page, tuple[type, str]] = {
    Page.START: (PlanService, "list"),
    Page.MODELS: (DefinitionService, "list"),
    **dict.fromkeys(NEEDS_A_PROFILE, (ProfileService, "list")),
    Page.RUNS: (RunService, "list"),
    Page.RUN: (RunService, "get"),
    Page.SWEEPS: (SweepService, "list"),
    Page.COMPARE: (RunService, "list"),
    Page.LAUNCH: (PlanService, "list"),
    Page.NODES: (SqlNodes, "list"),
    Page.NOTIFICATIONS: (NoticeService, "list"),
}
LATER: dict[Page, tuple[type, str]] = {  # in what Streamlit draws again by itself
    Page.RUN: (SqlMetrics, "last"),
    Page.RUNS: (SqlNodes, "list"),
    Page.NODES: (RunService, "count"),
}


def nothing(backend: Backend) -> None:
    """A new database."""


def one(backend: Backend) -> None:
    """A model with its profile, plan and training, and the node that did it."""
    backend.nodes.beat(seed.NODE)
    definition = backend.definitions.add_zoo("vgg_digits").id
    _, profile = seed.profile_run(backend, definition)
    seed.succeeded(backend, definition, seed.plan_for(backend, profile))


def many(backend: Backend) -> None:
    """Three models and profiles, a dozen plans, 42 runs, eight nodes."""
    for number in range(8):
        backend.nodes.beat(f"node-{number + 1}")
    found = seed.everything(backend)
    for name in ("mlp", "alexnet"):
        definition = backend.definitions.add_zoo(name)
        backend.profiles.add(replace(seed.a_profile(), name=name), definition.id)
    for _ in range(11):
        plan = seed.plan_for(backend, backend.profiles.get(found.profile))
    for number in range(35):
        seed.submit(backend, found.definition, plan, f"run {number} of many")
    seed.succeeded(backend, found.definition, plan)


STATES = {"empty": (nothing, EMPTY), "one": (one, ONE), "many": (many, MANY)}


@pytest.fixture(scope="module")
def state(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A home in that state, which no test changes."""
    fill, _ = STATES[request.param]
    with seed.settings(tmp_path_factory.mktemp(request.param)):
        backend = seed.fresh()
        fill(backend)
        backend.close()
        yield request.param


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
@pytest.mark.parametrize("state", STATES, indirect=True)
def test_every_page_in_every_state(state: str, page: Page) -> None:
    shown = visit(page)
    assert STATES[state][1][page] in text_of(shown).replace("\u00a0", " ")
    assert not shown.exception
    assert not shown.error


@pytest.mark.parametrize("state", ["one"], indirect=True)
@pytest.mark.parametrize(
    ("page", "fault"),
    [*FAULTS.items(), *LATER.items()],
    ids=lambda value: getattr(value, "path", ""),
)
def test_a_fault_of_ours_is_an_apology_on_every_page(
    state: str, page: Page, fault: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError("a detail that is nobody's business")

    kind, method = fault
    monkeypatch.setattr(kind, method, broken)
    shown = visit(page, id=1) if page is Page.RUN else visit(page)
    assert "because of an error in Stageflow" in shown.error[0].value
    assert "nobody's business" not in text_of(shown)
    assert not shown.exception


def test_a_full_disk_is_said_on_the_page(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.MODELS)
    engine = services.backend().database.engine

    def stop_growing(connection: object, *_: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]  # type: ignore[attr-defined]
        connection.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]

    engine.dispose()
    event.listen(engine, "connect", stop_growing)
    filler = b"def model():\n    ...\n" + b"# the disk is full\n" * 20_000
    upload(page, filler)
    assert "space" in page.error[0].value
    assert not page.exception
    assert not backend.definitions.list()


def upload(page: AppTest, source: bytes) -> None:
    page.file_uploader[0].upload("mine.py", source, "text/x-python")
    button(page, "Add model").click().run()
