"""PostgreSQL databases of today's schema for one test after another.

To make one takes half a second of a core, with a file for every table and index; to empty one takes
a tenth of that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, NullPool, create_engine, text

from backend.settings import Settings
from backend.storage.schema import upgrade
from tests.postgres import Postgres

TEMPLATE = "template"
_ALONE = """SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
_COUNTED = "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public'"
_PARTS = ("class", "attribute", "attrdef", "constraint", "index", "trigger", "proc", "namespace")
_SCHEMA = "SELECT " + ", ".join(
    f"(SELECT count(*) || ' ' || max(xmin::text::bigint) FROM pg_{part})" for part in _PARTS
)
"""Of everything that a schema consists of: how many there are, and who wrote the last one."""
_WORN = """SELECT EXISTS (SELECT FROM pg_stats WHERE schemaname = 'public') OR EXISTS (
SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
AND pg_relation_size(oid) > 1000000)"""
"""Statistics and room of rows that are gone: queries would be planned otherwise, and be slow."""


class Emptied:
    """A database that is lent to one test at a time. Afterwards it has the rows of a new one, and
    its ids begin anew; if its schema was changed, or it had very many rows, it goes."""

    def __init__(self, server: Postgres, folder: Path) -> None:
        self._server, self._name = server, ""
        self._tell(f"CREATE DATABASE {TEMPLATE}")
        upgrade(Settings(home=folder, database_url=server.database(TEMPLATE)))

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The URL of a database as the migrations leave it."""
        name = self._name or self._made(TEMPLATE)
        self._name = ""
        yield self._server.database(name)
        with self._connected(name) as connection:
            connection.execute(text(_ALONE))
            is_usable = self._is_like_new(connection)
            if is_usable:
                self._empty(connection)
        if is_usable:
            self._name = name
        else:
            self._tell(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def bare(self) -> Iterator[str]:
        """The URL of a database without tables, which nobody had before."""
        name = self._made("template1")
        yield self._server.database(name)
        self._tell(f"DROP DATABASE {name} WITH (FORCE)")

    def _made(self, source: str) -> str:
        name = f"t{uuid4().hex}"
        self._tell(f"CREATE DATABASE {name} TEMPLATE {source}")
        return name

    def _tell(self, command: str) -> None:
        engine = create_engine(self._server.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
        with engine.connect() as connection:
            connection.execute(text(command))

    def _is_like_new(self, connection: Connection) -> bool:
        schema = tuple(connection.execute(text(_SCHEMA)).one())
        return schema == self._schema and not connection.scalar(text(_WORN))

    def _empty(self, connection: Connection) -> None:
        connection.exec_driver_sql(self._emptying)
        for table, rows in self._first_rows.items():
            put = (
                f'INSERT INTO "{table}" SELECT * FROM json_populate_recordset(NULL::"{table}", :r)'
            )
            connection.execute(text(put), {"r": rows})
        for name, last in connection.execute(text(_COUNTED)).all():
            if last != self._counted[name]:
                again = {"name": f'"{name}"', "last": self._counted[name]}
                start = text("SELECT setval(:name, coalesce(:last, 1), :last IS NOT NULL)")
                connection.execute(start, again)

    @cached_property
    def _schema(self) -> tuple[str, ...]:
        with self._connected(TEMPLATE) as connection:
            return tuple(connection.execute(text(_SCHEMA)).one())

    @cached_property
    def _emptying(self) -> str:
        """In the role of a replica no trigger answers, and no foreign key."""
        with self._connected(TEMPLATE) as connection:
            tables = connection.scalars(text(_TABLES)).all()
        deleted = "; ".join(f'DELETE FROM "{table}"' for table in tables)
        return f"SET session_replication_role = replica; {deleted}"

    @cached_property
    def _first_rows(self) -> dict[str, str]:
        """What the migrations put there, as JSON by table."""
        found = {}
        with self._connected(TEMPLATE) as connection:
            for table in connection.scalars(text(_TABLES)).all():
                rows = connection.scalar(text(f'SELECT json_agg(t)::text FROM "{table}" t'))
                if rows is not None:
                    found[table] = rows
        return found

    @cached_property
    def _counted(self) -> dict[str, int | None]:
        with self._connected(TEMPLATE) as connection:
            return dict(map(tuple, connection.execute(text(_COUNTED))))

    @contextmanager
    def _connected(self, name: str) -> Iterator[Connection]:
        engine = create_engine(self._server.database(name), poolclass=NullPool)
        with engine.begin() as connection:
            yield connection
