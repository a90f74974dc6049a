"""The condition on every write of an attempt, as one UPDATE."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Update, update
from sqlalchemy.orm import Session

from backend.runs.attempts.fence import Fence, LeaseLost
from backend.runs.states import LIVE
from backend.storage.database import Database
from backend.storage.tables.tables import RunRow


def hold(session: Session, fence: Fence, **changes: Any) -> int:
    """Change the run's row, and keep it locked up to the end of the transaction; the
    sequence number of its newest log line. Raises `LeaseLost` where the fence is stale."""
    query = _held(fence).values({"token": fence.token, **changes}).returning(RunRow.last_seq)
    last_seq = session.scalar(query.execution_options(synchronize_session=False))
    if last_seq is None:
        raise LeaseLost(f"attempt {fence.attempt} no longer holds run {fence.run_id}")
    return last_seq


@contextmanager
def held(database: Database, fence: Fence, **changes: Any) -> Iterator[Session]:
    """A transaction that holds the run, with these changes of its row. Raises `LeaseLost`."""
    with database.write() as session:
        hold(session, fence, **changes)
        yield session


def hold_once(session: Session, fence: Fence, batch: int, **changes: Any) -> int | None:
    """The same for write number `batch` of the attempt, which counts from 1; None, and nothing
    changed, where it was made before: its answer was lost. 0 = a write without a number."""
    if not batch:
        return hold(session, fence, **changes)
    query = _held(fence).where(RunRow.last_batch < batch)
    query = query.values({"last_batch": batch, **changes}).returning(RunRow.last_seq)
    last_seq = session.scalar(query.execution_options(synchronize_session=False))
    if last_seq is None:
        hold(session, fence)
    return last_seq


def _held(fence: Fence) -> Update:
    return update(RunRow).where(
        RunRow.id == fence.run_id,
        RunRow.attempt == fence.attempt,
        RunRow.token == fence.token,
        RunRow.state.in_(LIVE),
    )
