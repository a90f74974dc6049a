"""The rows of any table, of whatever revision and database, as lines of JSON and back.

The tables are read from the database itself, not from today's models.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import JSON, Column, Connection, DateTime, LargeBinary, MetaData, Table, event
from sqlalchemy import select as select_from

from backend.errors import InvalidInput

REVISION_TABLE = "alembic_version"
ROWS_AT_ONCE = 1000
BLOBS_AT_ONCE = 8
LARGEST = 2**63
"""Whole numbers from here on are floats: SQLite and the JSON writer end there."""
Row = list[Any]


@dataclass(frozen=True, slots=True)
class Sum:
    """What a table holds, in whatever order: its rows, and their SHA-256 added up modulo 2^256."""

    rows: int = 0
    digest: str = "0" * 64

    def plus(self, rows: Iterable[Row]) -> "Sum":
        """With these rows added."""
        count, total = self.rows, int(self.digest, 16)
        for row in rows:
            count += 1
            text = json.dumps(_same_everywhere(row), sort_keys=True)
            total += int.from_bytes(hashlib.sha256(text.encode()).digest())
        return Sum(count, f"{total % 2**256:064x}")


def tables(connection: Connection, *only: str) -> list[Table]:
    """Every table that holds something of ours, those that others refer to first; or those of these
    names, without what they refer to: all of them are 0.1 s of questions to the database."""
    found = MetaData()
    event.listen(found, "column_reflect", _as_stored)
    wanted = (lambda name, _: name in only) if only else None
    found.reflect(connection, only=wanted, resolve_fks=not only)
    return [table for table in found.sorted_tables if table.name != REVISION_TABLE]


def names(table: Table) -> tuple[str, ...]:
    """Its columns, in the order of the alphabet: revisions add them at other places."""
    return tuple(sorted(column.name for column in table.columns))


def rows_of(connection: Connection, table: Table) -> Iterator[Row]:
    """Every row as values that JSON knows, in the order of `names`, sorted by the primary key."""
    columns = [table.columns[name] for name in names(table)]
    query = select_from(*columns).order_by(*table.primary_key.columns)
    for row in connection.execute(query, execution_options={"yield_per": _at_once(table)}):
        yield [_to_plain(value) for value in row]


def insert(connection: Connection, table: Table, rows: Iterator[Row]) -> Sum:
    """Put the rows into the table; what they add up to. Raises `InvalidInput` on values that
    the columns cannot hold."""
    columns = [table.columns[name] for name in names(table)]
    total = Sum()
    while batch := list(islice(rows, _at_once(table))):
        total = total.plus(batch)
        values = [
            {c.name: _of_plain(c, v) for c, v in zip(columns, row, strict=True)} for row in batch
        ]
        connection.execute(table.insert(), values)
    return total


def to_line(row: Row) -> bytes:
    """One line, without its end."""
    return json.dumps(row, separators=(",", ":")).encode()


def of_line(line: bytes, table: Table) -> Row:
    """Raises `InvalidInput` on what is not a row of that table."""
    try:
        row = json.loads(line, parse_int=_number)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, list) or len(row) != len(table.columns):
        raise InvalidInput(
            f"{table.name}: {line[:60]!r} is not a row of {len(table.columns)} values"
        )
    return row


def _at_once(table: Table) -> int:
    heavy = any(isinstance(column.type, LargeBinary) for column in table.columns)
    return BLOBS_AT_ONCE if heavy else ROWS_AT_ONCE


def _as_stored(_inspector: object, _table: object, column: Any) -> None:
    """None is SQL's NULL in columns of JSON too, as in the models."""
    if isinstance(column["type"], JSON):
        column["type"].none_as_null = True


def _to_plain(value: Any) -> Any:
    match value:
        case datetime():
            return (
                (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
            )
        case bytes() | memoryview():
            return base64.b64encode(value).decode()
        case _:
            return value


def _of_plain(column: Column[Any], value: Any) -> Any:
    try:
        match column.type:
            case _ if value is None:
                return None
            case DateTime():
                return datetime.fromisoformat(value)
            case LargeBinary():
                return base64.b64decode(value, validate=True)
            case _:
                return value
    except (ValueError, TypeError):
        raise InvalidInput(
            f"{column.table.name}.{column.name}: {value!r:.60} does not fit"
        ) from None


def _same_everywhere(value: Any) -> Any:
    """PostgreSQL's JSON knows no difference between 1e22 and 10000000000000000000000, nor
    between -0.0 and 0.0."""
    match value:
        case float() if value.is_integer() and abs(value) < LARGEST:
            return int(value)
        case bool():
            return value
        case int():
            return _number(str(value))
        case dict():
            return {key: _same_everywhere(item) for key, item in value.items()}
        case list():
            return [_same_everywhere(item) for item in value]
        case _:
            return value


def _number(text: str) -> int | float:
    number = int(text)
    return number if abs(number) < LARGEST else float(number)
