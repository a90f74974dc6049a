"""Faults of disks and databases, said so that a person can mend them: in one place."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError, DBAPIError, InterfaceError, OperationalError

from backend.errors import StageflowError


class StorageFull(StageflowError):
    """The disk has no room; what was stored before is intact."""

    advice = "Free some space on that disk and try again; nothing stored before was changed."


class DatabaseUnreachable(StageflowError):
    """The database cannot be opened or does not answer."""


class SchemaOutdated(StageflowError):
    """The database is not at the revision that this Stageflow needs."""

    advice = "Run: stageflow db upgrade"


FULL = ("database or disk is full", "no space left on device", "disk full", "quota exceeded")
BUSY = ("database is locked", "database table is locked")
MISSING = ("no such table", "no such column", "undefinedtable", "undefinedcolumn")


def place(url: URL) -> str:
    """Where the database is, for people: its file, or its URL without the password."""
    if url.get_backend_name() == "sqlite":
        return url.database or ":memory:"
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
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"{fault.filename or where}: {fault.strerror}")
    return DatabaseUnreachable(
        f"{fault.filename or where}: {fault.strerror}",
        "Check the folder's permissions, or set STAGEFLOW_HOME to one that you may write.",
    )


def _of_database(fault: DBAPIError, url: URL) -> StageflowError | None:
    reason = f"{type(fault.orig).__name__}: {fault.orig}"
    where = place(url)
    if any(sign in reason.lower() for sign in FULL):
        return StorageFull(f"{where}: the disk is full")
    if any(sign in reason.lower() for sign in BUSY):
        return DatabaseUnreachable(
            f"{where}: another process has held the database locked for too long",
            "Try again; look for a process that is stuck (stageflow doctor).",
        )
    if any(sign in reason.lower() for sign in MISSING):
        return SchemaOutdated(f"{where}: {str(fault.orig).splitlines()[0]}")
    if type(fault) is DatabaseError or isinstance(fault, OperationalError | InterfaceError):
        return DatabaseUnreachable(
            f"{where}: {str(fault.orig).strip().splitlines()[0]}",
            "Check that it is there and that STAGEFLOW_DATABASE_URL and STAGEFLOW_HOME are right.",
        )
    return None
