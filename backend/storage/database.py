"""One engine for SQLite or PostgreSQL, and short transactions on it."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Select, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from backend.errors import InvalidInput
from backend.people.rights import Visibility
from backend.settings import Settings
from backend.storage.errors import mended
from backend.storage.look_up import look_up
from backend.storage.tables.values import to_column
from backend.storage.visibility import limit

Row = TypeVar("Row")
READING = {"stageflow_reading": True}
BUSY_MILLISECONDS = 10_000
CONNECT_SECONDS = 5
CONNECTIONS, FILES = 10, 64
"""What a process keeps open, of PostgreSQL's hundred connections by default, or of files: a page
reads from several threads at once, and who waits for a connection waits in a long row. The one
used last is used next: taken in turns, each would come to hold 2 MB of pages in its cache."""


class Database:
    """Transactions whose faults are raised as `StageflowError`s. They see the projects in
    `visible` alone (None = all)."""

    def __init__(self, engine: Engine, visible: Visibility = None) -> None:
        self.engine = engine
        self._reader = engine.execution_options(**READING)
        self._visible = visible

    def restricted_to(self, visible: Visibility) -> "Database":
        """The same database for somebody who sees these projects."""
        return self if visible == self._visible else Database(self.engine, visible)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that is committed at the end. SQLite lets one in at a time."""
        with mended(self.engine.url), self._session(self.engine) as session, session.begin():
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that changes nothing and, on SQLite, waits for no writer."""
        with mended(self.engine.url), self._session(self._reader) as session:
            yield session

    def get(self, kind: type[Row], id_: int) -> Row:
        """The row of this kind with this id. Raises `NotFound`."""
        with self.read() as session:
            return look_up(session, kind, id_)

    def rows(self, query: Select[Row]) -> Sequence[Row]:
        """What a query of one entity or column gives."""
        with self.read() as session:
            return session.scalars(query).all()

    def first(self, query: Select[Row]) -> Row | None:
        """The first of these, if there is any."""
        with self.read() as session:
            return session.scalars(query).first()

    def _session(self, engine: Engine) -> Session:
        session = Session(engine)
        return session if self._visible is None else limit(session, self._visible)

    @contextmanager
    def plain(self, reading: bool = False) -> Iterator[Connection]:
        """The same without a session, for what is done often: rows in place of objects."""
        engine = self._reader if reading else self.engine
        with mended(self.engine.url), engine.begin() as connection:
            yield connection

    def close(self) -> None:
        self.engine.dispose()


def open_engine(settings: Settings, foreign_keys: bool = True) -> Engine:
    """An engine for the settings' database; the folder of a SQLite file is made, mode 700.
    Raises `InvalidInput` on a URL of another kind, `StorageFull` on a full disk."""
    url = _url(settings)
    if url.get_backend_name() == "postgresql":
        engine = create_engine(
            url,
            json_serializer=to_column,
            pool_pre_ping=True,
            pool_size=CONNECTIONS,
            pool_use_lifo=True,
            connect_args={"connect_timeout": CONNECT_SECONDS},
        )
        _set_up_postgresql(engine, settings.lease)
        return engine
    with mended(url):
        Path(url.database or "").parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        engine = create_engine(
            url,
            json_serializer=to_column,
            poolclass=QueuePool,
            pool_size=FILES,
            pool_use_lifo=True,
        )
    _set_up_sqlite(engine, foreign_keys)
    return engine


def _url(settings: Settings) -> URL:
    if not settings.database_url:
        return URL.create("sqlite", database=str(settings.sqlite_file))
    advice = "Use postgresql://user@host/name, or unset it for SQLite."
    try:
        url = make_url(settings.database_url)
        kind = url.get_backend_name()
        if kind not in ("sqlite", "postgresql"):
            raise InvalidInput(f"STAGEFLOW_DATABASE_URL: no support for {kind}", advice)
        url.get_dialect().import_dbapi()
        if kind == "sqlite" and url.database in (None, "", ":memory:"):
            raise InvalidInput("STAGEFLOW_DATABASE_URL: SQLite needs a file", advice)
    except (ArgumentError, ValueError, ImportError):  # it is not shown: a password may be in it
        problem = "STAGEFLOW_DATABASE_URL is not a database URL, or its driver is not installed"
        raise InvalidInput(problem, advice) from None
    return url


def _set_up_postgresql(engine: Engine, lease: float) -> None:
    """Who stands still in the middle of a transaction for longer than a lease is put out of it
    by the server: others wait for the rows that it has locked, to take its runs over."""

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            name = "idle_in_transaction_session_timeout"
            cursor.execute("SELECT set_config(%s, %s, false)", (name, f"{1000 * lease:.0f}"))
        connection.commit()


def _inode(path: str) -> int | None:
    """Of the file that is there now."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _set_up_sqlite(engine: Engine, foreign_keys: bool) -> None:
    """Without BEGIN IMMEDIATE, two transactions that read and then write lose updates."""

    path = engine.url.database or ""
    seen: set[int | None] = set()

    @event.listens_for(engine, "do_connect")
    def refuse_to_replace(*_: object) -> None:
        """SQLite itself would make an empty file, and all that was stored would be forgotten."""
        if seen - {None} and _inode(path) is None:
            raise FileNotFoundError(errno.ENOENT, "the database's file is gone", path)

    @event.listens_for(engine, "connect")
    def configure(connection: Any, record: ConnectionPoolEntry) -> None:
        record.info["file"] = _inode(path)
        seen.add(record.info["file"])
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "checkout")
    def follow(_connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        """Nothing is read from, or written to, a file that is deleted, or replaced by another."""
        if record.info["file"] is not None and _inode(path) != record.info["file"]:
            raise DisconnectionError

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        reading = connection.get_execution_options().get("stageflow_reading", False)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
