"""All rows from one database into another: checked, or not at all; the first is not changed."""

from collections.abc import Mapping

from alembic import command
from sqlalchemy import Connection, Table

from backend.errors import InvalidInput, StageflowError
from backend.settings import Settings
from backend.storage.backup.layout import (
    check_free,
    check_idle,
    go_on_from,
    lay_out,
    next_numbers,
    snapshot,
)
from backend.storage.backup.rows import Sum, insert, of_line, rows_of, tables, to_line
from backend.storage.errors import SchemaOutdated
from backend.storage.revision import known, revision_of
from backend.storage.schema import configuration, whole


class RowsDiffer(StageflowError):
    """The new database does not hold what the old one does."""

    advice = "Nothing was written. Please report this error."


def move(settings: Settings, to: str, replace: bool = False) -> Mapping[str, Sum]:
    """Copy every row to the database at the URL `to`; what each table held. The files in the
    home stay where they are: keep STAGEFLOW_HOME.
    Raises `Occupied`, `InvalidInput`, `SchemaOutdated`, `DatabaseUnreachable`, `RowsDiffer`."""
    target = settings.model_copy(update={"database_url": to})
    if target.sql_url == settings.sql_url:
        raise InvalidInput("the database would move to where it is", "Give another URL.")
    with snapshot(settings, still=True) as source, whole(target) as destination:
        revision = revision_of(source)
        if revision not in known():
            raise SchemaOutdated(f"this Stageflow does not know the revision {revision}")
        check_idle(source, settings)
        check_free(destination, target, replace)
        lay_out(destination, str(revision))
        into = {table.name: table for table in tables(destination)}
        moved = {t.name: _copy(source, t, destination, into[t.name]) for t in tables(source)}
        go_on_from(destination, next_numbers(source))
        command.upgrade(configuration(destination), "head")
        return moved


def _copy(source: Connection, table: Table, destination: Connection, into: Table) -> Sum:
    """The same way as by a backup: through lines."""
    rows = (of_line(to_line(row), table) for row in rows_of(source, table))
    given = insert(destination, into, rows)
    found = Sum().plus(rows_of(destination, into))
    if found != given:
        raise RowsDiffer(f"{table.name}: {given.rows} rows were read and {found.rows} written")
    return given
