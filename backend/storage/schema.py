"""The database's revision: what it is, what it should be, and the way from one to the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from backend.settings import Settings
from backend.storage.database import open_engine
from backend.storage.errors import DatabaseUnreachable, SchemaOutdated, mended, place

MIGRATIONS = Path(__file__).parents[2] / "migrations"
UPGRADE_LOCK = 0x57A6EF10
"""PostgreSQL advisory lock: two who upgrade at once do it one after the other."""


def upgrade(settings: Settings) -> str:
    """Bring the database to this Stageflow's revision, which comes back. A fault midway
    leaves the old schema. Raises `DatabaseUnreachable`, `StorageFull`, and `SchemaOutdated` where a
    newer Stageflow was here."""
    with whole(settings) as connection:
        _refuse_newer(revision_of(connection), place(connection.engine.url))
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


def current(settings: Settings) -> tuple[str | None, str]:
    """(the database's revision, the one that this Stageflow needs); None = no tables yet."""
    engine = open_engine(settings)
    try:
        return revisions(engine)
    finally:
        engine.dispose()


def revisions(engine: Engine) -> tuple[str | None, str]:
    """`current` on an engine that is open."""
    with mended(engine.url), engine.connect() as connection:
        return revision_of(connection), _head()


def check(engine: Engine) -> None:
    """Raise `SchemaOutdated` where the database is not at this Stageflow's revision."""
    found, needed = revisions(engine)
    if found == needed:
        return
    where = place(engine.url)
    if found is None:
        raise SchemaOutdated(f"{where} has no tables yet; this Stageflow needs revision {needed}")
    _refuse_newer(found, where)
    raise SchemaOutdated(f"{where} is at revision {found}, this Stageflow needs {needed}")


def _refuse_newer(found: str | None, where: str) -> None:
    if found is not None and found not in known():
        raise SchemaOutdated(
            f"{where} is at revision {found}, which this Stageflow ({_head()}) does not know",
            "It was upgraded by a newer Stageflow: install that one.",
        )


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's configuration, without a file; the environment uses `connection`."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def revision_of(connection: Connection) -> str | None:
    """The database's revision; None = no tables yet."""
    return MigrationContext.configure(connection).get_current_revision()


def _head() -> str:
    head = ScriptDirectory.from_config(configuration()).get_current_head()
    if head is None:
        raise DatabaseUnreachable(f"no migrations in {MIGRATIONS}", "Reinstall stageflow.")
    return head


def known() -> set[str]:
    """Every revision of this Stageflow's migrations."""
    script = ScriptDirectory.from_config(configuration())
    return {step.revision for step in script.walk_revisions()}
