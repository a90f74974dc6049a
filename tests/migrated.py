"""Databases as the migrations make them, which run once per process and are copied afterwards."""

import tempfile
from functools import cache
from pathlib import Path

from backend.settings import Settings
from backend.storage.schema import upgrade


def migrated(settings: Settings) -> None:
    """As `upgrade` leaves a SQLite database that is not there yet; others are upgraded."""
    file = settings.sqlite_file
    if settings.database_url or file.exists():
        upgrade(settings)
        return
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.touch(mode=0o600)
    file.write_bytes(_sqlite())


def is_untouched(settings: Settings) -> bool:
    """Whether nobody has written to a database that `migrated` made."""
    file = settings.sqlite_file
    log = file.with_name(f"{file.name}-wal")
    is_written = log.exists() and log.stat().st_size > 0
    return not settings.database_url and not is_written and file.read_bytes() == _sqlite()


@cache
def _sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder), database_url="")
        upgrade(settings)
        return settings.sqlite_file.read_bytes()
