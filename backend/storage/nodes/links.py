"""Link tests in SQL."""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf
from typing import Any

from sqlalchemy import select, update

from backend.codec import to_plain
from backend.links.link_test import Link, LinkState, LinkTest, LinkTestMember
from backend.storage.database import Database
from backend.storage.look_up import value_of
from backend.storage.tables.node_tables import LinkTestRow
from backend.storage.tables.values import DatabaseClock

Members = tuple[LinkTestMember, ...]
Links = tuple[Link, ...]
LONGEST = 24 * 3600.0
"""Seconds that a test waits in the queue of a pool's cluster."""
OPEN = (LinkState.QUEUED.value, LinkState.RUNNING.value)


class SqlLinks:
    """Keeps tests; a change that comes after the end of a test is lost without a word."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, members: Members) -> LinkTest:
        with self._database.write() as session:
            row = LinkTestRow(
                state=LinkState.QUEUED.value,
                members=to_plain(Members, members),
                created_at=datetime.now(UTC),
                asked=session.scalar(select(DatabaseClock())) or 0.0,
                rendezvous="",
                links=[],
                error="",
            )
            session.add(row)
            session.flush()
            return value_of(LinkTest, row)

    def latest(self) -> LinkTest | None:
        row = self._database.first(select(LinkTestRow).order_by(LinkTestRow.id.desc()).limit(1))
        return value_of(LinkTest, row) if row else None

    def get(self, test_id: int) -> LinkTest:
        """Raises `NotFound`."""
        return value_of(LinkTest, self._database.get(LinkTestRow, test_id))

    def waiting(self, node: str, patience: float) -> Sequence[LinkTest]:
        """Those that wait for a node, oldest first; older than `patience` seconds they fail."""
        return [
            test
            for test in self._open(patience)
            if node in (member.node for member in test.members)
        ]

    def of_pool(self, pool: str) -> Sequence[LinkTest]:
        """Those that a pool's jobs measure and that are not over, oldest first."""
        return [test for test in self._open(inf) if test.pool == pool]

    def _open(self, patience: float) -> Sequence[LinkTest]:
        query = select(LinkTestRow, DatabaseClock() - LinkTestRow.asked)
        query = query.where(LinkTestRow.state.in_(OPEN)).order_by(LinkTestRow.id)
        with self._database.read() as session:
            found = [(value_of(LinkTest, row), age) for row, age in session.execute(query)]
        kept = []
        for test, age in found:
            limit = LONGEST if test.pool else 2 * patience
            if age > limit:
                self.fail(test.id, f"not all of its nodes joined within {limit:.0f} s")
            else:
                kept.append(test)
        return kept

    def meet(self, test_id: int, rendezvous: str) -> None:
        self._change(test_id, state=LinkState.RUNNING.value, rendezvous=rendezvous)

    def finish(self, test_id: int, links: Links) -> None:
        self._change(test_id, state=LinkState.DONE.value, links=to_plain(Links, links))

    def fail(self, test_id: int, error: str) -> None:
        self._change(test_id, state=LinkState.FAILED.value, error=error)

    def _change(self, test_id: int, **values: Any) -> None:
        """Nothing where the test is over."""
        is_open = LinkTestRow.state.in_(OPEN)
        with self._database.write() as session:
            session.execute(
                update(LinkTestRow).where(LinkTestRow.id == test_id, is_open).values(**values)
            )
