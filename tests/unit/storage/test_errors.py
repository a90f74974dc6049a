"""Each fault of a disk or a driver becomes the error that says what to do."""

import errno
import sqlite3

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DatabaseError, IntegrityError, InterfaceError, OperationalError

from backend.storage.errors import DatabaseUnreachable, SchemaOutdated, StorageFull, mended

FILE = make_url("sqlite:////data/my%20home/stageflow.db")
SERVER = make_url("postgresql://me:secret@db.example/stageflow")


def raised(fault: Exception, url=FILE) -> Exception:
    with pytest.raises(Exception) as caught, mended(url):  # noqa: PT011 (every kind is asked for)
        raise fault
    return caught.value


def wrapped(kind, text: str) -> Exception:
    return kind("SELECT 1", {}, sqlite3.OperationalError(text))


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), StorageFull),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), StorageFull),
        (PermissionError(errno.EACCES, "Permission denied"), DatabaseUnreachable),
        (wrapped(OperationalError, "database or disk is full"), StorageFull),
        (wrapped(OperationalError, "No space left on device"), StorageFull),
        (wrapped(OperationalError, "database is locked"), DatabaseUnreachable),
        (wrapped(OperationalError, "unable to open database file"), DatabaseUnreachable),
        (wrapped(DatabaseError, "file is not a database"), DatabaseUnreachable),
        (wrapped(InterfaceError, "connection already closed"), DatabaseUnreachable),
        (wrapped(OperationalError, "no such table: runs"), SchemaOutdated),
    ],
)
def test_a_fault_becomes_an_error_with_advice(fault: Exception, kind: type):
    error = raised(fault)
    assert type(error) is kind
    assert error.__cause__ is fault
    assert error.advice


@pytest.mark.parametrize("fault", [wrapped(IntegrityError, "UNIQUE constraint"), ValueError("x")])
def test_a_fault_of_the_program_stays_what_it_is(fault: Exception):
    assert raised(fault) is fault


def test_the_place_is_named_without_a_password():
    error = raised(wrapped(OperationalError, "connection refused"), SERVER)
    assert "me:***@db.example" in str(error)
    assert "secret" not in str(error)
