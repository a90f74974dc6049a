"""Pages under AppTest, on a real database of their own."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from app.components.plan import planning_view
from app.queries.background import Visitor
from app.session.state import Page, Param
from backend.bootstrap import Backend
from tests.app import seed
from tests.app.copied import copied

MAIN = Path(__file__).parents[2] / "app" / "main.py"
Open = Callable[..., AppTest]


def visit(to: Page, /, **params: object) -> AppTest:
    """A first visit: nothing else was drawn before. AppTest knows a page that it has not drawn by
    the stem of its file, which is its path."""
    app = AppTest.from_file(MAIN, default_timeout=240)
    app.switch_page(to.value)
    for name, value in params.items():
        app.query_params[Param(name).value] = str(value)
    return app.run()


@pytest.fixture
def backend(home: Path) -> Iterator[Backend]:
    """The services on an empty database."""
    found = seed.fresh()
    yield found
    found.close()


@pytest.fixture(scope="session", autouse=True)
def as_served() -> Iterator[None]:
    """AppTest runs with the product's options where these take time. It looks for components of
    Streamlit's in all installed packages, which takes half a second: once, not for every page."""
    for name in ("runner.magicEnabled", "browser.gatherUsageStats"):
        config.set_option(name, False)
    with pytest.MonkeyPatch.context() as patch:
        found = cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", found)
        yield


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages wait for the planners: on a loaded machine a second is not enough. What a page shows
    meanwhile has tests of its own."""
    for name in ("AT_ONCE", "FIRST", "GRACE"):
        monkeypatch.setattr(planning_view, name, 60.0)


@pytest.fixture(autouse=True)
def nobody_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest's server is a mock: of two searches that ask it for the first time at one moment, one
    may be answered with what is no bool, and breaks."""
    monkeypatch.setattr(Visitor, "is_here", True)


@pytest.fixture
def open_page(home: Path) -> Open:
    """Open a page as a first visit with these URL parameters."""
    return visit


@pytest.fixture
def seeded(backend: Backend) -> seed.Seeded:
    """One run in every state."""
    return copied(backend)
