"""The audit log in SQL: rows are added and read, never changed."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import select

from backend.people.audit import AuditEntry, AuditOutcome
from backend.storage.database import Database
from backend.storage.look_up import value_of
from backend.storage.tables.people_tables import AuditRow


class SqlAuditLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, actor: str, action: str, target: str, outcome: AuditOutcome) -> None:
        row = AuditRow(
            time=datetime.now(UTC), actor=actor, action=action, target=target, outcome=outcome
        )
        with self._database.write() as session:
            session.add(row)

    def list(self, before: int | None, limit: int) -> Sequence[AuditEntry]:
        """The newest first; those older than entry `before` where one is given."""
        query = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit)
        if before is not None:
            query = query.where(AuditRow.id < before)
        return [value_of(AuditEntry, row) for row in self._database.rows(query)]
