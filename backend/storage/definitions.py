"""Definitions in SQL: versions that point at contents."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.definitions.definition import Definition, DefinitionInUse, Source
from backend.storage.database import Database
from backend.storage.look_up import look_up, needed_by, value_of
from backend.storage.quotas import admit_file
from backend.storage.tables.tables import ContentRow, DefinitionRow, ProfileRow, RunRow

TRIES = 20
"""More than the people who upload one name in the same instant."""


class SqlDefinitions:
    """Keeps definitions by content: equal bytes under one name are one version."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, name: str, filename: str, data: bytes, source: Source, project: int
    ) -> Definition:
        """The version of `name` in the project that has these bytes, made when there is none.
        Two who add at once meet in a unique constraint; the later one looks again."""
        given = (project, name, filename, data, source)
        for _ in range(TRIES):
            with suppress(IntegrityError), self._database.write() as session:
                return value_of(Definition, _find_or_add(session, *given))
        with self._database.write() as session:
            return value_of(Definition, _find_or_add(session, *given))

    def get(self, definition_id: int) -> Definition:
        """Raises `NotFound`."""
        return value_of(Definition, self._database.get(DefinitionRow, definition_id))

    def find(self, name: str, version: int | None, project: int) -> Definition | None:
        """The given version, or the newest one, in the project."""
        query = select(DefinitionRow).where(
            DefinitionRow.name == name, DefinitionRow.project_id == project
        )
        if version is not None:
            query = query.where(DefinitionRow.version == version)
        row = self._database.first(query.order_by(DefinitionRow.version.desc()).limit(1))
        return value_of(Definition, row) if row else None

    def list(self) -> Sequence[Definition]:
        """Newest first."""
        rows = self._database.rows(select(DefinitionRow).order_by(DefinitionRow.id.desc()))
        return [value_of(Definition, row) for row in rows]

    def source(self, definition_id: int) -> bytes:
        """The file's text. Raises `NotFound`."""
        with self._database.read() as session:
            row = look_up(session, DefinitionRow, definition_id)
            return session.get_one(ContentRow, row.digest).data

    def delete(self, definition_id: int) -> None:
        """Forget it, and its file where no other version has the same. Raises `NotFound`, and
        `DefinitionInUse` naming the runs and profiles that need it."""
        with self._database.write() as session:
            row = look_up(session, DefinitionRow, definition_id)
            digest = row.digest
            _check_unused(session, row)
            session.delete(row)
            session.flush()
            every = DefinitionRow.__table__  # those of other projects too
            same = select(every.c.id).where(every.c.digest == digest).limit(1)
            if session.scalar(same) is None:
                session.delete(session.get_one(ContentRow, digest))


def _check_unused(session: Session, row: DefinitionRow) -> None:
    users: tuple[tuple[str, type[RunRow] | type[ProfileRow]], ...]
    users = ("run", RunRow), ("profile", ProfileRow)
    for noun, table in users:
        if text := needed_by(session, noun, table, table.definition_id == row.id):
            raise DefinitionInUse(
                f"{row.name}@{row.version} is needed by {text}",
                "A definition cannot be deleted while something made with it is stored.",
            )


def _find_or_add(
    session: Session, project: int, name: str, filename: str, data: bytes, source: Source
) -> DefinitionRow:
    digest = hashlib.sha256(data).hexdigest()
    named = (DefinitionRow.project_id == project, DefinitionRow.name == name)
    same = select(DefinitionRow).where(*named, DefinitionRow.digest == digest)
    if (found := session.scalar(same)) is not None:
        return found
    admit_file(session.connection(), project, len(data))
    if session.get(ContentRow, digest) is None:
        session.add(ContentRow(digest=digest, data=data))
        session.flush()
    newest = session.scalar(select(func.max(DefinitionRow.version)).where(*named))
    row = DefinitionRow(
        project_id=project,
        name=name,
        version=(newest or 0) + 1,
        filename=filename,
        digest=digest,
        size=len(data),
        source=source,
        created_at=datetime.now(UTC),
    )
    session.add(row)
    session.flush()
    return row
