"""Sweeps in SQL: a sweep and all of its runs are stored in one transaction, or nothing is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import exists, select, update

from backend.codec import to_plain
from backend.prediction.fallback import Fallback
from backend.runs.request.spec import TrainSpec
from backend.runs.sweeps.sweep import Point, Sweep, SweepRun, SweepSpec
from backend.storage.database import Database
from backend.storage.look_up import value_of
from backend.storage.runs.runs import added
from backend.storage.tables.team_tables import SweepRow, SweepRunRow
from backend.storage.tables.values import DatabaseMoment


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What one run of a sweep is to be."""

    values: Point
    name: str
    spec: TrainSpec
    fallbacks: tuple[Fallback, ...] = ()


class SqlSweeps:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, spec: SweepSpec, owner: str, planned: Iterable[PlannedRun]) -> Sweep:
        """The sweep, whose runs are all queued. Raises what storing a run raises."""
        early = spec.early.first or spec.early.median
        with self._database.write() as session:
            rows = [
                (each.values, added(session, each.name, each.spec, owner, None, each.fallbacks))
                for each in planned
            ]
            row = SweepRow(
                project_id=rows[0][1].project_id,
                name=name,
                owner=owner,
                spec=to_plain(SweepSpec, spec),
                is_open=early,
                created_at=session.scalar(select(DatabaseMoment())),
                runs=[
                    SweepRunRow(number=number, run_id=run.id, values=values, ended="")
                    for number, (values, run) in enumerate(rows, start=1)
                ],
            )
            session.add(row)
            session.flush()
            return _sweep(row)

    def get(self, sweep_id: int) -> Sweep:
        """Raises `NotFound`."""
        return _sweep(self._database.get(SweepRow, sweep_id))

    def list(self, limit: int = 100) -> Sequence[Sweep]:
        """The newest first."""
        query = select(SweepRow).order_by(SweepRow.id.desc()).limit(limit)
        return [_sweep(row) for row in self._database.rows(query)]

    def of_run(self, run_id: int) -> int | None:
        """The sweep that a run belongs to, if any."""
        query = select(SweepRunRow.sweep_id).where(SweepRunRow.run_id == run_id)
        return self._database.first(query)

    def open(self) -> Sequence[Sweep]:
        """Those whose runs may still be ended early."""
        query = select(SweepRow).where(SweepRow.is_open).order_by(SweepRow.id)
        return [_sweep(row) for row in self._database.rows(query)]

    def has_open(self) -> bool:
        """Whether there is such a one."""
        with self._database.read() as session:
            return bool(session.scalar(select(exists().where(SweepRow.is_open))))

    def close(self, sweep_id: int) -> None:
        """All of its runs have ended, or go on by themselves."""
        with self._database.write() as session:
            session.execute(update(SweepRow).where(SweepRow.id == sweep_id).values(is_open=False))

    def explain(self, sweep_id: int, number: int, why: str) -> None:
        """Note why a run ends early; the first reason stays."""
        mine = (SweepRunRow.sweep_id == sweep_id, SweepRunRow.number == number)
        with self._database.write() as session:
            session.execute(
                update(SweepRunRow).where(*mine, SweepRunRow.ended == "").values(ended=why)
            )


def _sweep(row: SweepRow) -> Sweep:
    return value_of(Sweep, row, runs=tuple(value_of(SweepRun, each) for each in row.runs))
