"""Faults of disks and databases, said so that a person can mend them: in one place."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError, DBAPIError, InterfaceError, OperationalError

from backend.errors import StageflowError, first_line


class StorageFull(StageflowError):
    """The disk has no room; what was stored before is intact."""

    advice = "Free some space on that disk and try again; nothing stored before was changed."


class DatabaseUnreachable(StageflowError):
    """The database cannot be opened or does not answer."""


class FolderUnusable(StageflowError):
    """A folder for kept files cannot be read or written; no database is concerned."""

    advice = "Check that the folder is there, its permissions, and that its disk answers."


class SchemaOutdated(StageflowError):
    """The database is not at the revision that this Stageflow needs."""

    advice = "Run: stageflow db upgrade"


NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
FULL = ("database or disk is full", "no space left on device", "disk full", "quota exceeded")
NO_ROOM_FOR_LOG = 64 * 1024
"""Bytes: below this SQLite cannot lay out its write-ahead log's index (32 KiB, sqlite.org/wal.html)
beside the database, and calls that "disk I/O error", for readers too."""
BUSY = ("database is locked", "database table is locked")
MISSING = ("no such table", "no such column", "undefinedtable", "undefinedcolumn")


def place(url: URL) -> str:
    """Where the database is, for people: its file, or its URL without the password."""
    if url.get_backend_name() == "sqlite":
        return url.database or ""
    return url.render_as_string()


@contextmanager
def mended(url: URL) -> Iterator[None]:
    """Raise `StorageFull`, `DatabaseUnreachable` or `SchemaOutdated` in place of a driver's
    or the system's error; let the others through."""
    try:
        yield
    except DBAPIError as fault:
        if (error := _of_database(fault, url)) is None:
            raise
        raise error from fault
    except OSError as fault:
        raise of_system(fault, place(url)) from fault


def of_system(fault: OSError, where: str) -> StageflowError:
    """The error for a fault of the file system at `where`."""
    if fault.errno in NO_ROOM:
        return StorageFull(f"{fault.filename or where}: {fault.strerror}")
    return DatabaseUnreachable(
        f"{fault.filename or where}: {fault.strerror}",
        "Check the folder's permissions, or set STAGEFLOW_HOME to one that you may write.",
    )


def _cannot_log(reason: str, url: URL) -> bool:
    if "disk I/O error" not in reason or not url.database:
        return False
    try:
        return shutil.disk_usage(Path(url.database).parent).free < NO_ROOM_FOR_LOG
    except OSError:
        return False


def _of_database(fault: DBAPIError, url: URL) -> StageflowError | None:
    reason = f"{type(fault.orig).__name__}: {fault.orig}"
    where = place(url)
    if any(sign in reason.lower() for sign in FULL) or _cannot_log(reason, url):
        return StorageFull(f"{where}: the disk is full")
    if any(sign in reason.lower() for sign in BUSY):
        return DatabaseUnreachable(
            f"{where}: another process keeps the database locked",
            "Try again; look for a process that is stuck (stageflow doctor).",
        )
    if any(sign in reason.lower() for sign in MISSING):
        return SchemaOutdated(f"{where}: {first_line(fault.orig)}")
    if (
        type(fault) is DatabaseError
        or isinstance(fault, OperationalError | InterfaceError)
        or fault.connection_invalidated
    ):
        return DatabaseUnreachable(
            f"{where}: {first_line(fault.orig)}",
            "Check that it is there and that STAGEFLOW_DATABASE_URL and STAGEFLOW_HOME are right.",
        )
    return None
