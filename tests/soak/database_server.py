"""The database of a site, and how it is taken away: a PostgreSQL stopped, a SQLite locked."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.postgres import postgres


class DatabaseServer(Protocol):
    """`url` as in the settings ("" = SQLite in the home)."""

    url: str

    def stop(self) -> None:
        """Nobody can write any more; of PostgreSQL at once, as if its machine had gone."""
        ...

    def start(self) -> None: ...


class Locked:
    """SQLite: somebody else holds the write lock for so long."""

    url = ""

    def __init__(self, home: Path) -> None:
        self._file = home / "stageflow.db"
        self._holder: sqlite3.Connection | None = None

    def stop(self) -> None:
        self._holder = sqlite3.connect(self._file, isolation_level=None, timeout=30)
        self._holder.execute("BEGIN IMMEDIATE")

    def start(self) -> None:
        if self._holder is not None:
            self._holder.rollback()
            self._holder.close()
            self._holder = None


@contextmanager
def server_of(kind: str, home: Path, place: Path | None) -> Iterator[DatabaseServer]:
    """In a folder below `place`; it ends with the block."""
    if kind == "sqlite":
        yield Locked(home)
        return
    with postgres(place) as server:
        yield server
