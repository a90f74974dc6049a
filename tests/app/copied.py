"""A home of `seed.everything`, written once per process and copied: writing it takes half a second,
and most tests want one of their own."""

import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Column

from backend.bootstrap import Backend
from backend.storage.tables.tables import Base
from backend.storage.tables.values import UtcDateTime
from tests.app import seed
from tests.migrated import is_untouched

CLOCKS = frozenset({"asked", "due", "heartbeat", "lease_until", "time", "until"})
"""Columns of Unix seconds."""


def copied(backend: Backend) -> seed.Seeded:
    """What `seed.everything` writes into STAGEFLOW_HOME, and as old as if it had been written now.
    It is written indeed where the database has something in it already."""
    if not is_untouched(backend.settings):
        return seed.everything(backend)
    given = {name: value for name, value in os.environ.items() if name.startswith("STAGEFLOW_")}
    home = Path(given.pop("STAGEFLOW_HOME"))
    place, found, written_at = _written(tuple(sorted(given.items())))
    file = backend.settings.sqlite_file
    shutil.copytree(place, home, ignore=lambda *_: [file.name], dirs_exist_ok=True)
    with (
        closing(sqlite3.connect(place / file.name)) as source,
        closing(sqlite3.connect(file)) as target,
    ):
        source.backup(target)  # under connections that are open already
        _move(target, time.time() - written_at)
    return found


def _move(database: sqlite3.Connection, seconds: float) -> None:
    """Every time to so much later, to the millisecond; also in tables that only grow."""
    kept = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in kept:
        database.execute(f'DROP TRIGGER "{name}"')
    later = {"seconds": seconds, "modifier": f"{seconds:+.3f} seconds"}
    for table in Base.metadata.sorted_tables:
        moved = [f"{column.name} = {how}" for column in table.columns if (how := _moved(column))]
        if moved:
            database.execute(f'UPDATE "{table.name}" SET {", ".join(moved)}', later)
    for _, trigger in kept:
        database.execute(trigger)
    database.commit()


def _moved(column: Column[Any]) -> str:
    """Its new value, in SQL; "" of a column that is no time."""
    if isinstance(column.type, UtcDateTime):
        return f"strftime('%Y-%m-%d %H:%M:%f000', {column.name}, :modifier)"
    return f"{column.name} + :seconds" if column.name in CLOCKS else ""


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
"""Until the process ends."""


@cache
def _written(variables: tuple[tuple[str, str], ...]) -> tuple[Path, seed.Seeded, float]:
    """A home under these settings, what is in it, and when it was written."""
    folder = tempfile.TemporaryDirectory(prefix="stageflow-seed-")
    _KEPT.append(folder)
    home = Path(folder.name)
    with seed.settings(home, **dict(variables)), closing(seed.fresh()) as backend:
        return home, seed.everything(backend), time.time()
