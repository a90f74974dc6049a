"""A database at any revision: laid out, emptied, and the numbers that it gives next."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic import command
from sqlalchemy import Connection, Table, func, select, text

from backend.errors import StageflowError
from backend.settings import Settings
from backend.storage.backup.rows import tables
from backend.storage.database import READING, open_engine
from backend.storage.errors import mended, place
from backend.storage.revision import revision_of
from backend.storage.schema import configuration, is_postgresql
from backend.storage.tables.values import DatabaseClock

SEEDED = {"projects": 1}
"""Rows that the migrations themselves make, the first project: with no others it is empty."""


class Occupied(StageflowError):
    """A database that holds something, or that somebody works with."""


@contextmanager
def snapshot(settings: Settings, still: bool = False) -> Iterator[Connection]:
    """Everything as it is at one moment, while others go on writing; on SQLite they wait for
    the end where it shall stand still."""
    engine = open_engine(settings)
    options: dict[str, Any] = {} if still else dict(READING)
    if is_postgresql(engine):
        options["isolation_level"] = "REPEATABLE READ"
    try:
        with mended(engine.url), engine.connect() as connection:
            yield connection.execution_options(**options)
    finally:
        engine.dispose()


def lay_out(connection: Connection, revision: str) -> None:
    """Tables of `revision` without a row, whatever was there."""
    if revision_of(connection) is not None:
        command.downgrade(configuration(connection), "base")
    command.upgrade(configuration(connection), revision)
    for table in tables(connection, *SEEDED):
        connection.execute(table.delete())


def check_free(connection: Connection, settings: Settings, replace: bool) -> None:
    """Raises `Occupied` where rows are there and `replace` is not said, or an agent works."""
    check_idle(connection, settings)
    if replace:
        return
    for table in tables(connection):
        count = connection.scalar(select(func.count()).select_from(table)) or 0
        if count > SEEDED.get(table.name, 0):
            raise Occupied(
                f"{place(connection.engine.url)} is not empty: {table.name} has {count} rows",
                "Choose an empty home and database, or pass --replace to overwrite them.",
            )


def check_idle(connection: Connection, settings: Settings) -> None:
    """Raises `Occupied` where an agent has given a sign of life within the lease."""
    nodes = next(iter(tables(connection, "nodes")), None)
    if nodes is None:
        return
    alive = nodes.c.heartbeat > DatabaseClock() - settings.lease
    name = connection.scalar(select(nodes.c.name).where(alive).limit(1))
    if name is not None:
        raise Occupied(
            f"{place(connection.engine.url)}: the agent {name} works with it",
            f"Stop the dashboard and every agent, and wait for {settings.lease:.0f} s.",
        )


def next_numbers(connection: Connection) -> dict[str, int]:
    """By table, the greatest number that it has ever given: of a deleted run too."""
    if is_postgresql(connection):
        last = text("SELECT pg_sequence_last_value(CAST(:name AS regclass))")
        names = {table.name: _sequence(connection, table) for table in tables(connection)}
        given = {t: connection.scalar(last, {"name": n}) for t, n in names.items() if n is not None}
        return {table: number for table, number in given.items() if number}
    if not _counts_numbers(connection):
        return {}
    found = connection.execute(text("SELECT name, seq FROM sqlite_sequence"))
    return {str(name): int(last) for name, last in found}


def go_on_from(connection: Connection, numbers: dict[str, int]) -> None:
    """Give no number again: neither those of the rows nor `numbers`."""
    if is_postgresql(connection):
        for table in tables(connection):
            _set_sequence(connection, table, numbers.get(table.name, 0))
    elif _counts_numbers(connection):
        for name, last in numbers.items():
            given = {"name": name, "last": last}
            old = text("DELETE FROM sqlite_sequence WHERE name = :name AND seq < :last")
            connection.execute(old, given)
            connection.execute(
                text(
                    "INSERT INTO sqlite_sequence (name, seq) SELECT :name, :last WHERE NOT EXISTS "
                    "(SELECT 1 FROM sqlite_sequence WHERE name = :name)"
                ),
                given,
            )


def _set_sequence(connection: Connection, table: Table, last: int) -> None:
    sequence = _sequence(connection, table)
    if sequence is None:
        return
    last = max(connection.scalar(select(func.max(table.c.id))) or 0, last)
    if last:
        change = text("SELECT setval(CAST(:name AS regclass), :last)")
        connection.execute(change, {"name": sequence, "last": last})


def _sequence(connection: Connection, table: Table) -> str | None:
    if "id" not in table.columns:
        return None
    found: str | None = connection.scalar(
        text("SELECT pg_get_serial_sequence(:name, 'id')"), {"name": table.name}
    )
    return found


def _counts_numbers(connection: Connection) -> bool:
    """Whether SQLite remembers numbers: some table has AUTOINCREMENT."""
    query = text("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'")
    return connection.scalar(query) is not None
