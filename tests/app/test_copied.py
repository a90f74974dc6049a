"""A copied home is as one that was written now."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Float

from backend.bootstrap import Backend
from backend.storage.tables.tables import Base
from tests.app import seed
from tests.app.copied import CLOCKS, _move, _written, copied


def test_a_copy_is_as_if_written_now(backend: Backend) -> None:
    found = copied(backend)
    place, written, _ = _written(())
    assert found == written
    runs = backend.runs.list().runs
    now = datetime.now(UTC)
    assert all(timedelta() <= now - run.created_at < timedelta(minutes=1) for run in runs)
    assert [run.id for run in runs] == [6, 5, 4, 3, 2, 1]
    assert [node.alive for node in backend.nodes.list()] == [True]
    assert backend.dispatch.expire() == []
    files = {path.relative_to(place) for path in place.rglob("*") if path.parent != place}
    home = backend.settings.home
    assert files <= {path.relative_to(home) for path in home.rglob("*")}


def test_nodes_and_leases_are_as_young_as_the_copy(backend: Backend) -> None:
    copied(backend)
    with closing(sqlite3.connect(backend.settings.sqlite_file)) as database:
        _move(database, -3600)
        assert [node.alive for node in backend.nodes.list()] == [False]
        _move(database, 3600)
    assert [node.alive for node in backend.nodes.list()] == [True]
    assert backend.dispatch.expire() == []


def test_every_column_of_seconds_is_a_time_that_moves_or_none() -> None:
    """A new column of a number belongs to one of both."""
    columns = [column for table in Base.metadata.sorted_tables for column in table.columns]
    numbers = {column.name for column in columns if isinstance(column.type, Float)}
    assert numbers - CLOCKS == {"accuracy", "ahead", "factor", "seconds", "value"}


def test_what_only_grows_still_does(backend: Backend) -> None:
    copied(backend)
    with (
        closing(sqlite3.connect(backend.settings.sqlite_file)) as database,
        pytest.raises(sqlite3.IntegrityError, match="only grows"),
    ):
        database.execute("UPDATE audit_log SET actor = 'nobody'")


def test_what_is_there_already_stays(backend: Backend) -> None:
    mine = backend.definitions.add("mine.py", b"def model(): ...\n")
    found = copied(backend)
    assert found.definition != mine.id
    assert backend.definitions.get(mine.id).name == "mine"
    assert backend.runs.get(found.running).state.is_live


def test_each_copy_is_its_own(backend: Backend) -> None:
    found = copied(backend)
    backend.runs.delete(found.failed)
    with seed.settings(backend.settings.home / "other"), closing(seed.fresh()) as other:
        assert other.runs.get(copied(other).failed).id == found.failed
