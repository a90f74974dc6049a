"""What goes wrong is said in a sentence, never as a traceback."""

import re
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from streamlit.testing.v1 import AppTest

from app.session.state import Page
from backend.bootstrap import Backend
from backend.settings import load_settings
from tests.app.conftest import Open
from tests.app.pages import text_of


def set_revision(revision: str) -> None:
    engine = create_engine(load_settings().sql_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :r"), {"r": revision})
    engine.dispose()


def test_a_database_without_tables_names_the_command(home: Path, open_page: Open) -> None:
    home.mkdir()
    page = open_page(Page.MODELS)
    assert "stageflow db upgrade" in page.error[0].value
    assert not page.exception
    assert not page.title


def test_a_database_of_another_revision_is_refused(backend: Backend, open_page: Open) -> None:
    set_revision("9999")
    page = open_page(Page.RUNS)
    assert "9999" in page.error[0].value
    assert not page.exception


def broken_page() -> None:
    from app.components.shell.boundary import boundary

    with boundary():
        raise ZeroDivisionError("a detail that is nobody's business")


def test_a_fault_of_ours_is_an_apology_with_a_number_that_the_log_knows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = AppTest.from_function(broken_page).run()
    said = page.error[0].value
    (number,) = re.findall(r"report error ([0-9a-f]{8})", said)
    assert "ZeroDivisionError" not in text_of(page)
    assert not page.exception
    logged = capsys.readouterr().out
    assert number in logged
    assert "ZeroDivisionError" in logged


def test_a_table_that_is_gone_is_no_traceback(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.MODELS)
    engine = create_engine(load_settings().sql_url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE definitions"))
    engine.dispose()
    page.run()
    assert page.error
    assert "Traceback" not in text_of(page)
    assert not page.exception
