"""What SQLite has to be told so that several processes can use it."""

import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError

from backend.settings import Settings
from backend.storage.database import Database, open_engine
from backend.storage.errors import DatabaseUnreachable, StorageFull
from backend.storage.revision import current
from backend.storage.schema import upgrade
from backend.storage.tables.node_tables import NodeRow
from backend.storage.tables.tables import ContentRow


@pytest.fixture
def settings(home: Path) -> Settings:
    settings = Settings(home=home)
    upgrade(settings)
    return settings


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    database = Database(open_engine(settings))
    yield database
    database.close()


def test_every_connection_is_set_up(database: Database):
    with database.read() as session:
        found = {
            name: session.scalar(text(f"PRAGMA {name}"))
            for name in ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
        }
    assert found == {
        "journal_mode": "wal",
        "busy_timeout": 10_000,
        "foreign_keys": 1,
        "synchronous": 1,
    }


def test_only_the_owner_can_look_into_home(settings: Settings):
    assert stat.S_IMODE(settings.home.stat().st_mode) == 0o700


def test_threads_that_read_and_then_write_lose_nothing(database: Database):
    with database.write() as session:
        session.add(NodeRow(name="n", devices=[], versions={}, heartbeat=0.0))

    def increase(_: int) -> None:
        with database.write() as session:
            row = session.scalars(select(NodeRow)).one()
            row.heartbeat += 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(increase, range(200)))
    with database.read() as session:
        assert session.scalars(select(NodeRow.heartbeat)).one() == 200


def test_a_reader_does_not_wait_for_a_writer(database: Database):
    with database.write() as writer:
        writer.add(NodeRow(name="n", devices=[], versions={}, heartbeat=0.0))
        writer.flush()
        with database.read() as reader:
            assert reader.scalars(select(NodeRow)).all() == []


def test_a_failed_write_leaves_nothing(database: Database):
    def write_twice() -> None:
        with database.write() as session:
            for _ in range(2):
                session.execute(insert(ContentRow).values(digest="0" * 64, data=b"x"))

    with pytest.raises(IntegrityError):
        write_twice()
    with database.read() as session:
        assert session.scalars(select(ContentRow)).all() == []


def test_a_database_that_may_not_grow_is_full(database: Database):
    with database.write() as session:
        pages = session.scalar(text("PRAGMA page_count"))
        session.execute(text(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(StorageFull, match=r"stageflow\.db") as caught, database.write() as session:
        session.add(ContentRow(digest="0" * 64, data=b"x" * 100_000))
    assert "space" in caught.value.advice


def test_a_locked_database_says_so(settings: Settings, database: Database):
    impatient = Database(open_engine(settings))
    with impatient.read() as session:
        session.execute(text("PRAGMA busy_timeout = 1"))
    with database.write() as holder:
        holder.execute(text("SELECT 1"))
        with pytest.raises(DatabaseUnreachable, match="locked"), impatient.write() as session:
            session.execute(text("SELECT 1"))
    impatient.close()


def test_a_file_that_is_no_database_says_so(home: Path):
    home.mkdir()
    (home / "stageflow.db").write_bytes(b"certainly no database" * 100)
    with pytest.raises(DatabaseUnreachable, match="not a database"):
        current(Settings(home=home))


def test_a_home_that_cannot_be_made_says_so(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DatabaseUnreachable, match="file") as caught:
        current(Settings(home=tmp_path / "file" / "home"))
    assert "STAGEFLOW_HOME" in caught.value.advice


def test_a_server_that_is_not_there_says_so(home: Path):
    settings = Settings(home=home, database_url="postgresql://me:secret@127.0.0.1:1/none")
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1:1") as caught:
        upgrade(settings)
    assert "secret" not in str(caught.value)


def test_a_file_that_vanishes_is_said_and_not_replaced_by_an_empty_one(
    settings: Settings, database: Database
):
    content = ContentRow(digest="0" * 64, data=b"x")
    with database.write() as session:
        session.add(content)
    database.engine.raw_connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file = settings.sqlite_file
    copy = file.read_bytes()
    file.unlink()
    for _ in range(2):
        with pytest.raises(DatabaseUnreachable, match="file is gone"):
            database.rows(select(ContentRow.digest))
        with pytest.raises(DatabaseUnreachable, match="gone"), database.write() as session:
            session.execute(text("SELECT 1"))
    assert not file.exists()
    file.write_bytes(copy)
    assert database.rows(select(ContentRow.digest)) == ["0" * 64]
