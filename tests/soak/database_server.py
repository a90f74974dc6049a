"""The database of a site, and how it is taken away: a PostgreSQL stopped, a SQLite locked."""

import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import psutil


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


class Postgres:
    """A server of its own, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Any = None
        self.start()
        self.url: str = self._server.get_uri()

    def stop(self) -> None:
        pid = self._server.get_pid()
        assert pid is not None
        server = psutil.Process(pid)
        server.send_signal(signal.SIGQUIT)  # PostgreSQL's "immediate shutdown"
        server.wait(30)
        with suppress(Exception):  # there is nothing left for it to stop
            self._server.cleanup()
        self._server = None

    def start(self) -> None:
        """Again where pgserver gives up after ten seconds on a busy machine."""
        import pgserver

        if self._is_up():
            return
        for _ in range(5):
            try:
                self._server = pgserver.get_server(str(self._folder))
                return
            except subprocess.SubprocessError:
                time.sleep(1.0)
        raise TimeoutError(f"PostgreSQL in {self._folder} does not start")

    def close(self) -> None:
        self._server.cleanup()

    def _is_up(self) -> bool:
        """A server that met a full disk has ended by itself."""
        if self._server is None:
            return False
        server = self._server.get_postmaster_info().process
        if server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
            return True
        with suppress(Exception):  # there is nothing left for it to stop
            self._server.cleanup()
        return False


@contextmanager
def server_of(kind: str, home: Path, place: Path | None) -> Iterator[DatabaseServer]:
    """In a folder below `place`; it ends with the block."""
    if kind == "sqlite":
        yield Locked(home)
        return
    with TemporaryDirectory(prefix="stageflow-pg-", dir=place) as folder:
        server = Postgres(Path(folder))
        yield server
        server.close()
