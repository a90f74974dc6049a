"""At which revision a database is, and which one this Stageflow needs.

Read without Alembic, whose import takes as long as a short command does.
"""

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from backend.settings import Settings
from backend.storage.database import open_engine
from backend.storage.errors import DatabaseUnreachable, SchemaOutdated, mended, place

MIGRATIONS = Path(__file__).parents[2] / "migrations"
VERSIONS = "alembic_version"
"""The table in which Alembic keeps a database's revision."""


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
        return revision_of(connection), newest()


def check(engine: Engine) -> None:
    """Raise `SchemaOutdated` where the database is not at this Stageflow's revision."""
    found, needed = revisions(engine)
    if found == needed:
        return
    where = place(engine.url)
    if found is None:
        raise SchemaOutdated(f"{where} has no tables yet; this Stageflow needs revision {needed}")
    refuse_newer(found, where)
    raise SchemaOutdated(f"{where} is at revision {found}, this Stageflow needs {needed}")


def refuse_newer(found: str | None, where: str) -> None:
    """Raise `SchemaOutdated` where no migration of this Stageflow leads to the revision `found`."""
    if found is not None and found not in known():
        raise SchemaOutdated(
            f"{where} is at revision {found}, which this Stageflow ({newest()}) does not know",
            "It was upgraded by a newer Stageflow: install that one.",
        )


def revision_of(connection: Connection) -> str | None:
    """The database's revision; None = no tables yet."""
    if not inspect(connection).has_table(VERSIONS):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSIONS}")).scalar()
    return None if found is None else str(found)


def newest() -> str:
    """The revision that this Stageflow needs. Raises `DatabaseUnreachable` without migrations."""
    if not known():
        raise DatabaseUnreachable(f"no migrations in {MIGRATIONS}", "Reinstall stageflow.")
    return max(known())


def known() -> set[str]:
    """Every revision of this Stageflow's migrations: the number that a file's name begins with."""
    files = (MIGRATIONS / "versions").glob("[0-9]*_*.py")
    return {file.name.partition("_")[0] for file in files}
