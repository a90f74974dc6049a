"""Pools and their jobs in SQL."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, select, update

from backend.codec import from_plain, to_plain
from backend.errors import NotFound
from backend.runs.pools.job import JobState, Seen
from backend.runs.pools.pool import Pool, PoolJob
from backend.runs.pools.room import PoolRoom
from backend.storage.database import Database
from backend.storage.look_up import value_of
from backend.storage.tables.pool_tables import JobRow, PoolRow
from backend.storage.tables.values import DatabaseClock, DatabaseMoment


class SqlPools:
    """`lease` in seconds: a pool whose last sign of life is older is not alive."""

    def __init__(self, database: Database, lease: float) -> None:
        self._database, self._lease = database, lease

    def beat(self, name: str, kind: str, room: PoolRoom | None, fault: str = "") -> None:
        """Who submits the pool's jobs is alive; `room` is None where the cluster did not tell it:
        then that which it told last stays."""
        with self._database.write() as session:
            row = session.get(PoolRow, name) or PoolRow(
                name=name, room=to_plain(PoolRoom, PoolRoom(()))
            )
            row.kind, row.fault = kind, fault
            row.heartbeat = session.scalar(select(DatabaseClock())) or 0.0
            if room is not None:
                row.room = to_plain(PoolRoom, room)
            session.add(row)

    def list(self) -> Sequence[Pool]:
        """By name."""
        query = select(PoolRow, DatabaseClock() - PoolRow.heartbeat).order_by(PoolRow.name)
        with self._database.read() as session:
            return [
                Pool(
                    row.name,
                    row.kind,
                    from_plain(PoolRoom, row.room),
                    age < self._lease,
                    datetime.fromtimestamp(row.heartbeat, UTC),
                    row.fault,
                )
                for row, age in session.execute(query)
            ]

    def get(self, name: str) -> Pool:
        """Raises `NotFound`, which names those that there are."""
        pools = {pool.name: pool for pool in self.list()}
        if name not in pools:
            known = f"Choose one of: {', '.join(pools)}." if pools else "None was ever started."
            raise NotFound(f"no pool {name!r}", known)
        return pools[name]


class SqlJobs:
    """A job of a run is written down before the cluster is asked for it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, run_id: int, attempt: int, pool: str) -> PoolJob:
        """The run's next job."""
        last = select(func.max(JobRow.number)).where(JobRow.run_id == run_id)
        with self._database.write() as session:
            row = JobRow(
                run_id=run_id,
                number=(session.scalar(last) or 0) + 1,
                attempt=attempt,
                pool=pool,
                state=JobState.SUBMITTING,
                hosts=[],
                submitted_at=session.scalar(select(DatabaseMoment())),
            )
            session.add(row)
            session.flush()
            return value_of(PoolJob, row)

    def seen(self, job: PoolJob, seen: Seen) -> None:
        """What its cluster says of a job that is not over."""
        told = {
            "state": seen.state,
            "engine_id": seen.engine_id,
            "reason": seen.reason,
            "advice": seen.advice,
            "starts_at": seen.starts_at,
            "hosts": list(seen.hosts),
        }
        self._change(job, **told)

    def ended(self, job: PoolJob, reason: str = "", output: str = "") -> None:
        """It is gone from its cluster, or was never taken."""
        with self._database.read() as session:
            now = session.scalar(select(DatabaseMoment()))
        self._change(
            job, state=JobState.GONE, ended_at=now, reason=reason, advice="", output=output
        )

    def of_pool(self, pool: str) -> Sequence[PoolJob]:
        """Those that are not over, the oldest first."""
        query = select(JobRow).where(JobRow.pool == pool, JobRow.state != JobState.GONE)
        return self._list(query.order_by(JobRow.submitted_at, JobRow.run_id))

    def counts(self) -> Mapping[str, Mapping[JobState, int]]:
        """By pool and state; none for those that are over."""
        query = select(JobRow.pool, JobRow.state, func.count()).where(JobRow.state != JobState.GONE)
        found: dict[str, dict[JobState, int]] = {}
        with self._database.read() as session:
            for pool, state, number in session.execute(query.group_by(JobRow.pool, JobRow.state)):
                found.setdefault(pool, {})[state] = number
        return found

    def of_runs(self, run_ids: Sequence[int]) -> Sequence[PoolJob]:
        """All of these runs, in the order of their numbers."""
        query = select(JobRow).where(JobRow.run_id.in_(run_ids))
        return self._list(query.order_by(JobRow.run_id, JobRow.number))

    def _list(self, query: Any) -> Sequence[PoolJob]:
        return [value_of(PoolJob, row) for row in self._database.rows(query)]

    def _change(self, job: PoolJob, **values: Any) -> None:
        mine = (JobRow.run_id == job.run_id, JobRow.number == job.number)
        with self._database.write() as session:
            session.execute(
                update(JobRow).where(*mine, JobRow.state != JobState.GONE).values(**values)
            )
