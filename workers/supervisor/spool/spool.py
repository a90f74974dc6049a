"""What an attempt has to tell the database, on the node's disk until the database has it."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path

from backend.runs.attempts.fence import Fence
from workers.supervisor.spool.entries import Entry, decoded, encoded

SUFFIX = ".sqlite"
SETTINGS = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
"""
"""In this order: one process uses the file, so the log needs no shared memory, which a full disk
or a network's file system may refuse. A commit outlives the process; a machine that loses its
power loses the newest ones (https://sqlite.org/pragma.html#pragma_synchronous)."""
SCHEMA = """
BEGIN;
CREATE TABLE IF NOT EXISTS fence (run_id INTEGER, attempt INTEGER, token TEXT);
CREATE TABLE IF NOT EXISTS entries (number INTEGER PRIMARY KEY AUTOINCREMENT, fields TEXT);
COMMIT;
"""
NO_ROOM = 64 * 1024
"""Bytes: with fewer on its disk, SQLite calls a full disk an "I/O error"."""


class Spool:
    """Numbered entries in their order, beside the fence of their attempt.

    The file is made with the first entry and outlives the process. An entry that is done is
    deleted with the next `add`: until then the database knows its number.
    """

    def __init__(self, path: Path, fence: Fence) -> None:
        self._path = path
        self.fence = fence
        self._database: sqlite3.Connection | None = None
        self._first: tuple[int, Entry, int] | None = None
        self._done = 0
        self.num_waiting = 0
        """Entries."""
        self.size = 0
        """Bytes that wait."""

    @staticmethod
    def of(folder: Path, fence: Fence) -> "Spool":
        """The one of this attempt in `folder`, empty."""
        name = f"{fence.run_id}-{fence.attempt}-{fence.token[:8]}{SUFFIX}"
        return Spool(folder / name, fence)

    @staticmethod
    def left(path: Path) -> "Spool":
        """What a dead agent left in its file. Raises `OSError` where it cannot be opened now,
        `LookupError` where it has no fence, `sqlite3.DatabaseError` where it is no spool."""
        with _system_error(path):
            database = _opened(path)
        fence = database.execute("SELECT run_id, attempt, token FROM fence").fetchone()
        if fence is None:
            database.close()
            raise LookupError("it has no fence")
        found = Spool(path, Fence(*fence))
        found._database = database
        query = "SELECT COUNT(*), COALESCE(SUM(LENGTH(fields)), 0) FROM entries"
        found.num_waiting, found.size = database.execute(query).fetchone()
        return found

    def add(self, entries: Sequence[Entry]) -> None:
        """Append them, all or none. Raises `OSError` (a full disk)."""
        self.insert([(None, entry) for entry in entries])

    def insert(self, entries: Sequence[tuple[int | None, Entry]]) -> None:
        """Append entries under their numbers (None: the next one), unless those are there."""
        rows = [(number, encoded(entry)) for number, entry in entries]
        if not rows:
            return
        with _system_error(self._path), _whole(self._connected(), self._path) as database:
            database.execute("DELETE FROM entries WHERE number <= ?", (self._done,))
            database.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?)", rows)
        self.num_waiting += len(rows)
        self.size += sum(len(fields) for _, fields in rows)

    def first(self) -> tuple[int, Entry] | None:
        """The oldest that waits, with its number; None where none does."""
        if self._first is None and self.num_waiting and self._database is not None:
            query = "SELECT number, fields FROM entries WHERE number > ? ORDER BY number LIMIT 1"
            number, fields = self._database.execute(query, (self._done,)).fetchone()
            self._first = number, decoded(fields), len(fields)
        return self._first and self._first[:2]

    def done(self) -> None:
        """The first is written."""
        if self._first is not None:
            self._done, _, size = self._first
            self.num_waiting, self.size = self.num_waiting - 1, self.size - size
            self._first = None

    def close(self) -> None:
        """Let another process read what waits."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def remove(self) -> None:
        """Nobody will ask for it any more."""
        self.close()
        for path in files_of(self._path):
            with suppress(OSError):  # gone already, or its folder is
                path.unlink()

    def _connected(self) -> sqlite3.Connection:
        if self._database is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._database = _opened(self._path, self.fence)
        return self._database


def files_of(path: Path) -> tuple[Path, ...]:
    """The file of a spool and its write-ahead log."""
    return path, path.with_name(f"{path.name}-wal")


def _opened(path: Path, *fences: Fence) -> sqlite3.Connection:
    """With these fences written there."""
    database = sqlite3.connect(path)
    try:
        database.executescript(SETTINGS + SCHEMA)
        with database:
            query = "INSERT INTO fence VALUES (?, ?, ?)"
            database.executemany(query, [astuple(fence) for fence in fences])
    except sqlite3.Error:
        database.close()
        raise
    return database


@contextmanager
def _whole(database: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """A transaction; where it fails, the log gives back the room that it took for it."""
    _, log = files_of(path)
    before = log.stat().st_size
    try:
        with database:
            yield database
    except sqlite3.Error:
        os.truncate(log, before)  # all that is committed lies before
        raise


@contextmanager
def _system_error(path: Path) -> Iterator[None]:
    """Raise `OSError` in place of what SQLite says of its disk."""
    try:
        yield
    except sqlite3.OperationalError as fault:
        is_full = fault.sqlite_errorname == "SQLITE_FULL"
        is_full = is_full or shutil.disk_usage(path.parent).free < NO_ROOM
        raise OSError(errno.ENOSPC if is_full else errno.EIO, str(fault), str(path)) from fault
