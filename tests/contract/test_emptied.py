"""A database that was emptied is as a new one; otherwise it is not lent again."""

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from backend.settings import Settings
from tests.contract.emptied import Emptied
from tests.contract.test_backup import fill, held

pytestmark = pytest.mark.postgres


def test_an_emptied_database_is_as_a_new_one(emptied: Emptied, tmp_path: Path) -> None:
    with emptied.lent() as url:
        settings = Settings(home=tmp_path / "1", node="here", database_url=url)
        new, numbers = held(settings), numbers_of(url)
        fill(settings)
        assert held(settings) != new
        assert numbers_of(url) != numbers
    with emptied.lent() as again:
        assert again == url
        assert held(settings) == new
        assert numbers_of(url) == numbers
        fill(settings.model_copy(update={"home": tmp_path / "2"}))


def numbers_of(url: str) -> list[tuple[str, int | None]]:
    """Of every sequence of ids the last one that was given."""
    engine = create_engine(url)
    with engine.connect() as connection:
        query = text("SELECT sequencename, last_value FROM pg_sequences ORDER BY 1")
        found = [tuple(row) for row in connection.execute(query)]
    engine.dispose()
    return found


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE runs ADD COLUMN more integer",
        "CREATE TABLE more (id integer)",
        "DROP INDEX {index}",
        "ALTER TABLE runs DISABLE TRIGGER ALL",
        "INSERT INTO contents SELECT n, repeat('x', 99)::bytea FROM generate_series(1, 9999) n",
        "INSERT INTO contents VALUES ('ab', 'x'); ANALYZE contents",
    ],
)
def test_what_is_not_as_new_is_not_lent_again(emptied: Emptied, change: str) -> None:
    with emptied.lent() as url:
        engine = create_engine(url)
        with engine.begin() as connection:
            query = text(
                "SELECT indexrelid::regclass FROM pg_index JOIN pg_class c ON c.oid ="
                " indexrelid WHERE NOT indisunique AND relname LIKE 'ix%' LIMIT 1"
            )
            index = connection.scalar(query)
            connection.exec_driver_sql(change.format(index=index))
        engine.dispose()
    with emptied.lent() as other:
        assert other != url
