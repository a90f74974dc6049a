"""Leases of single tasks in SQL, by the database's clock."""

from contextlib import suppress

from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from backend.runs.dispatch.leases import NodeTaken
from backend.storage.database import Database
from backend.storage.tables.node_tables import LeaseRow
from backend.storage.tables.values import DatabaseClock


class SqlLeases:
    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, name: str, holder: str, seconds: float) -> str:
        """Compare-and-set: take or renew the lease called `name`, unless another one holds it
        by the store's clock. Who holds it now."""
        free = or_(LeaseRow.holder == holder, LeaseRow.until < DatabaseClock())
        held = {"holder": holder, "until": DatabaseClock() + seconds}
        named = select(LeaseRow.holder).where(LeaseRow.name == name)
        mine = update(LeaseRow).where(LeaseRow.name == name, free).values(held)
        with self._database.plain() as connection:
            if connection.execute(mine.returning(LeaseRow.name)).first():
                return holder
            found = connection.scalar(named)
        if found is not None:
            return found
        with suppress(IntegrityError), self._database.plain() as connection:
            connection.execute(insert(LeaseRow).values(name=name, **held))
        return self._database.first(named) or ""

    def hold(self, name: str, holder: str, seconds: float, taken: str, advice: str) -> None:
        """`take`, or raise `NodeTaken`: what is `taken` by the one who is named behind it."""
        other = self.take(name, holder, seconds)
        if other != holder:
            free = f"the name is free after {seconds:.0f} s"
            raise NodeTaken(f"{taken} {other}", f"{advice}: {free}.")

    def is_held(self, name: str) -> bool:
        """Whether somebody has it now."""
        live = (LeaseRow.name == name, LeaseRow.until >= DatabaseClock())
        return self._database.first(select(LeaseRow.holder).where(*live)) is not None

    def drop(self, name: str, holder: str) -> None:
        """Let the next one have it at once."""
        with self._database.plain() as connection:
            mine = (LeaseRow.name == name, LeaseRow.holder == holder)
            connection.execute(delete(LeaseRow).where(*mine))
