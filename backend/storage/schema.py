"""The way of a database from one revision to another, by Alembic."""

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, text

from backend.settings import Settings
from backend.storage.database import open_engine
from backend.storage.errors import mended, place
from backend.storage.revision import MIGRATIONS, refuse_newer, revision_of

UPGRADE_LOCK = 0x57A6EF10
"""PostgreSQL advisory lock: two who upgrade at once do it one after the other."""


def upgrade(settings: Settings) -> str:
    """Bring the database to this Stageflow's revision, which comes back. A fault midway
    leaves the old schema. Raises `DatabaseUnreachable`, `StorageFull`, and `SchemaOutdated` where a
    newer Stageflow was here."""
    with whole(settings) as connection:
        refuse_newer(revision_of(connection), place(connection.engine.url))
        command.upgrade(configuration(connection), "head")
        return revision_of(connection) or ""


@contextmanager
def whole(settings: Settings) -> Iterator[Connection]:
    """One transaction for tables and rows alike: all of it is kept, or nothing."""
    engine = open_engine(settings, foreign_keys=False)
    try:
        with mended(engine.url), engine.begin() as connection:
            if is_postgresql(connection):
                connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": UPGRADE_LOCK})
            yield connection
    finally:
        engine.dispose()


def is_postgresql(database: Connection | Engine) -> bool:
    """Whether it is PostgreSQL, and not SQLite."""
    return database.dialect.name == "postgresql"


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's configuration, without a file; the environment uses `connection`."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
