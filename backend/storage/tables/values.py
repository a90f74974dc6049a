"""Python values to columns that SQLite and PostgreSQL hold alike."""

from datetime import UTC, datetime
from math import isfinite
from typing import Any

import orjson
from sqlalchemy import Boolean, DateTime, Dialect, Integer, SQLColumnExpression, Text, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Double, NullType, TypeDecorator

NOBODY = 0
"""Ids begin at one."""


def clean(text: str) -> str:
    """`text` without what a database refuses: NUL and halves of surrogate pairs."""
    return text.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def to_column(value: object) -> str:
    """JSON for a JSON column: clean text, null for numbers that are not finite."""
    return orjson.dumps(_storable(value)).decode()


def _storable(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case float() if not isfinite(value):
            return None
        case dict():
            return {clean(str(key)): _storable(item) for key, item in value.items()}
        case list() | tuple():
            return [_storable(item) for item in value]
        case _:
            return value


class CleanText(TypeDecorator[str]):
    """Text that came from programs: anything goes in."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else clean(value)


class Id(TypeDecorator[int]):
    """A row's number, as somebody may have typed it: what the column cannot hold is nobody's.
    PostgreSQL would take it for a fault of the query, and so would SQLite beyond 2^63."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> int | None:
        return value if value is None or 0 < value < 2**31 else NOBODY


class UtcDateTime(TypeDecorator[datetime]):
    """Aware datetimes in, UTC out; SQLite itself would forget the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else _utc(value)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _utc(value: datetime) -> datetime:
    """In the first and last hours of the calendar another zone may lie outside of it."""
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return (datetime.min if value.year == 1 else datetime.max).replace(tzinfo=UTC)


def _written_as(element: type[FunctionElement[Any]], sqlite: str, postgresql: str) -> None:
    """What an element without arguments is in the SQL of each database."""
    for dialect, text in (("sqlite", sqlite), ("postgresql", postgresql)):
        compiles(element, dialect)(lambda *_, text=text, **__: text)


class DatabaseClock(FunctionElement[float]):
    """Unix seconds on the database's own clock: the only clock that decides leases."""

    type = Double()
    inherit_cache = True


class DatabaseMoment(FunctionElement[datetime]):
    """Now, on the same clock: what begins on one machine may end on another."""

    type = UtcDateTime()
    inherit_cache = True


_written_as(
    DatabaseClock,
    sqlite="((julianday('now') - 2440587.5) * 86400.0)",
    postgresql="CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)",
)
_written_as(
    DatabaseMoment,
    sqlite="(strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')",  # as SQLAlchemy writes times there
    postgresql="clock_timestamp()",
)


class Few(FunctionElement[Any]):
    """A condition that few rows meet, such as that a run has not ended: SQLite, which knows of no
    frequencies, would look through a long history rather than into the index."""

    type = NullType()  # SQLAlchemy compares a Boolean with 1 there, and no index is found for that
    inherit_cache = True


@compiles(Few, "sqlite")
def _sqlite_few(element: Few, compiler: Any, **options: Any) -> str:
    """A hint to the planner, https://sqlite.org/lang_corefunc.html#unlikely."""
    return f"unlikely({compiler.process(element.clauses, **options)})"


@compiles(Few, "postgresql")
def _postgresql_few(element: Few, compiler: Any, **options: Any) -> str:
    return f"({compiler.process(element.clauses, **options)})"


class Holds(FunctionElement[bool]):
    """Whether a column holds a text, whatever the case (on SQLite: of ASCII letters)."""

    type = Boolean()
    inherit_cache = True

    def __init__(self, column: SQLColumnExpression[str], text: str) -> None:
        for sign in "/%_":
            text = text.replace(sign, f"/{sign}")
        super().__init__(column, literal(f"%{text}%", CleanText()))


@compiles(Holds, "sqlite")
def _sqlite_holds(element: Holds, compiler: Any, **options: Any) -> str:
    """LIKE ignores case there; three times as fast as lower() on both sides."""
    column, pattern = (compiler.process(part, **options) for part in element.clauses)
    return f"{column} LIKE {pattern} ESCAPE '/'"


@compiles(Holds, "postgresql")
def _postgresql_holds(element: Holds, compiler: Any, **options: Any) -> str:
    column, pattern = (compiler.process(part, **options) for part in element.clauses)
    return f"{column} ILIKE {pattern} ESCAPE '/'"
