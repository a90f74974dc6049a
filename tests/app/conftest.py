"""Pages under AppTest, on a real database of their own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.components.plan import planning_view
from app.session.state import Page, Param
from backend.bootstrap import Backend
from tests.app import seed

MAIN = Path(__file__).parents[2] / "app" / "main.py"
Open = Callable[..., AppTest]


@pytest.fixture
def backend(home: Path) -> Iterator[Backend]:
    """The services on an empty database."""
    found = seed.fresh()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages wait for the planners: on a loaded machine a second is not enough. What a page shows
    meanwhile has tests of its own."""
    for name in ("AT_ONCE", "FIRST", "GRACE"):
        monkeypatch.setattr(planning_view, name, 60.0)


@pytest.fixture
def open_page(home: Path) -> Open:
    """Open a page as a first visit with these URL parameters."""

    def visit(to: Page, **params: object) -> AppTest:
        app = AppTest.from_file(MAIN, default_timeout=60).run()
        app.switch_page(to.value)
        for name, value in params.items():
            app.query_params[Param(name).value] = str(value)
        return app.run()

    return visit


@pytest.fixture
def seeded(backend: Backend) -> seed.Seeded:
    """One run in every state."""
    return seed.everything(backend)
