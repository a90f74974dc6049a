"""Runs: empty, one in every state, filters and pages in the URL, nobody there to run."""

from app.state import Page
from backend.bootstrap import Backend
from backend.runs.spec import ProfileSpec
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import text_of


def rows(text: str) -> int:
    """How many runs the table shows (each has one cell that begins with its age)."""
    return sum(line.startswith(":gray[") and "now" in line for line in text.splitlines())


def test_without_runs_the_page_says_how_to_get_one(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.RUNS)
    assert "No run yet" in text_of(page)
    assert "stageflow up" in page.warning[0].value


def test_every_state_has_its_row(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUNS)
    text = text_of(page)
    for state in ("queued", "running", "succeeded", "failed", "cancelled"):
        assert state in text
    assert "96.8\u00a0%" in text
    assert not page.warning  # a node is alive
    assert not page.exception


def test_filters_narrow_the_list(seeded: seed.Seeded, open_page: Open) -> None:
    """That they are in the URL, too, is Streamlit's binding, which needs a browser."""
    page = open_page(Page.RUNS)
    assert rows(text_of(page)) == 6
    page.pills[0].set_value(["failed", "queued"]).run()
    assert rows(text_of(page)) == 2
    page.text_input[0].set_value("broken").run()
    assert rows(text_of(page)) == 1
    page.segmented_control[0].set_value("profile").run()
    assert "No run meets" in text_of(page)


def test_many_runs_are_paged(backend: Backend, open_page: Open) -> None:
    definition = backend.definitions.add_zoo("mlp")
    for number in range(23):
        run = backend.runs.submit(ProfileSpec(definition.id), f"number {number}")
        backend.runs.cancel(run.id)
    page = open_page(Page.RUNS)
    assert rows(text_of(page)) == 20
    page.pagination[0].set_value(2).run()
    assert rows(text_of(page)) == 3


def test_an_agent_that_fell_silent_is_named(backend: Backend, open_page: Open) -> None:
    seed.everything(backend, node_alive=False)
    assert "stageflow worker" in open_page(Page.RUNS).warning[0].value


def test_the_first_visit_lands_on_the_runs_once_there_are_any(
    backend: Backend, open_page: Open
) -> None:
    assert open_page(Page.HOME).title[0].value == "Models"
    seed.everything(backend)
    assert open_page(Page.HOME).title[0].value == "Runs"
