"""A real PostgreSQL server of one's own, the same for tests, faults and benchmarks."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest


class Postgres:
    """`folder` keeps the data of a server that is stopped; `url` stays the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: Any = None
        self.start()
        self.url = self.database("postgres")

    def database(self, name: str) -> str:
        """The URL of one of its databases."""
        return f"postgresql://postgres:@/{name}?host={self._folder}"

    def psql(self, command: str) -> None:
        """Tell the server."""
        self._server.psql(command)

    def start(self) -> None:
        """Again where pgserver gives up after ten seconds on a busy machine."""
        if sys.version_info >= (3, 13):
            pytest.skip("pgserver has no build for this Python")
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

    def stop(self) -> None:
        """At once, as if its machine had gone."""
        pid = self._server.get_pid()
        assert pid is not None
        server = psutil.Process(pid)
        server.send_signal(signal.SIGQUIT)  # PostgreSQL's "immediate shutdown"
        server.wait(120)
        self._forget()

    def close(self) -> None:
        """With everything written down."""
        if self._server is not None:
            self._server.cleanup()

    def _is_up(self) -> bool:
        """A server that met a full disk has ended by itself."""
        if self._server is None:
            return False
        server = self._server.get_postmaster_info().process
        if server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
            return True
        self._forget()
        return False

    def _forget(self) -> None:
        with suppress(Exception):  # there is nothing left for it to stop
            self._server.cleanup()
        self._server = None


@contextmanager
def postgres(place: Path | None = None) -> Iterator[Postgres]:
    """In a folder of its own below `place`, which goes with the block. By default outside of
    pytest's folder, which another pytest may close to the server's own user."""
    with TemporaryDirectory(prefix="stageflow-pg-", dir=place) as folder:
        server = Postgres(Path(folder))
        yield server
        server.close()
