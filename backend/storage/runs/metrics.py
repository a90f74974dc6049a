"""Metric points in SQL."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite, nan

from sqlalchemy import ColumnElement, delete, func, insert, literal, select, true, update
from sqlalchemy.orm import InstrumentedAttribute

from backend.runs.attempts.fence import Fence
from backend.runs.events import Metrics
from backend.runs.history.followed import NamedPoint
from backend.runs.history.records import MetricPoint
from backend.storage.database import Database
from backend.storage.fence import held, hold_once
from backend.storage.portions import ROWS, in_turns
from backend.storage.tables.metric_tables import RunMetricRow
from backend.storage.tables.tables import MetricRow
from backend.storage.tables.tracker_tables import FollowedRow

POINT = (MetricRow.step, MetricRow.epoch, MetricRow.value, MetricRow.time)


class SqlMetrics:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, fence: Fence, metrics: Metrics, batch: int = 0) -> None:
        points = zip(metrics.steps, metrics.values, metrics.times, strict=True)
        rows = [
            {
                "run_id": fence.run_id,
                "name": metrics.name,
                "step": step,
                "epoch": metrics.epoch,
                "value": value if isfinite(value) else None,
                "time": time,
            }
            for step, value, time in points
        ]
        with self._database.write() as session:
            if hold_once(session, fence, batch) is not None and rows:
                session.execute(insert(MetricRow), rows)

    def forget(self, fence: Fence, step: int) -> None:
        """Take back the points from `step` on: they will be made again, maybe under the numbers
        that these had, which count as sent to no tracker any more."""
        with held(self._database, fence) as session:
            session.execute(
                delete(MetricRow).where(MetricRow.run_id == fence.run_id, MetricRow.step >= step)
            )
            newest = session.scalar(select(func.max(MetricRow.id))) or 0
            ahead = (FollowedRow.run_id == fence.run_id, FollowedRow.position > newest)
            session.execute(update(FollowedRow).where(*ahead).values(position=newest))

    def copy(self, from_run: int, to_run: int, step: int) -> None:
        """Give a run the points that another one has before `step`."""
        kept = ("name", "step", "epoch", "value", "time")
        columns = [getattr(MetricRow, name) for name in kept]
        firsts = range(0, step, ROWS)
        for name, first in in_turns(product(self.names(from_run), firsts)):
            steps = (MetricRow.step >= first, MetricRow.step < min(first + ROWS, step))
            some = select(literal(to_run), *columns).where(*_of(from_run, name), *steps)
            with self._database.write() as session:
                session.execute(insert(MetricRow).from_select(("run_id", *kept), some))

    def list(self, run_id: int, name: str) -> Sequence[MetricPoint]:
        """By step. A value that was not finite comes back as NaN."""
        query = select(*POINT).where(*_of(run_id, name)).order_by(MetricRow.step, MetricRow.id)
        with self._database.read() as session:
            return [_point(*row) for row in session.execute(query)]

    def of_several(self, run_ids: Sequence[int], name: str) -> Mapping[int, Sequence[float]]:
        """What each of these runs has told of a metric, in order, numbers alone."""
        query = (
            select(MetricRow.run_id, MetricRow.value)
            .where(MetricRow.run_id.in_(run_ids), MetricRow.name == name)
            .order_by(MetricRow.step, MetricRow.id)
        )
        found: dict[int, list[float]] = {}
        with self._database.read() as session:
            for run_id, value in session.execute(query):
                if value is not None:
                    found.setdefault(run_id, []).append(value)
        return found

    def after(self, run_id: int, position: int, limit: int) -> Sequence[NamedPoint]:
        """The points of all metrics that were stored behind that one, as they were stored."""
        mine = MetricRow.run_id + 0 == run_id  # not by its index: the newest rows are wanted
        query = select(MetricRow.id, MetricRow.name, *POINT).where(mine, MetricRow.id > position)
        first = select(func.min(MetricRow.id)).where(MetricRow.run_id == run_id)
        with self._database.read() as session:
            if not position:
                query = query.where(MetricRow.id >= (session.scalar(first) or 0))
            rows = session.execute(query.order_by(MetricRow.id).limit(limit))
            return [
                NamedPoint(number, name, step, epoch, nan if value is None else value, moment)
                for number, name, step, epoch, value, moment in rows
            ]

    def last(self, run_id: int, name: str, count: int = 1) -> Sequence[MetricPoint]:
        """The `count` points with the largest steps, by step."""
        newest = (MetricRow.step.desc(), MetricRow.id.desc())
        query = select(*POINT).where(*_of(run_id, name)).order_by(*newest).limit(count)
        with self._database.read() as session:
            return [_point(*row) for row in reversed(session.execute(query).all())]

    def epoch_means(self, run_id: int, name: str, count: int = 1) -> Sequence[float]:
        """The mean of each of the newest `count` epochs, in order. Values that were not finite
        count for nothing."""
        mine = _of(run_id, name)
        newest = select(func.max(MetricRow.epoch)).where(*mine).scalar_subquery()
        query = (
            select(func.avg(MetricRow.value))
            .where(*mine, MetricRow.epoch > newest - count)
            .group_by(MetricRow.epoch)
            .order_by(MetricRow.epoch)
        )
        return [nan if mean is None else mean for mean in self._database.rows(query)]

    def curve(self, run_id: int, name: str, num_points: int = 1000) -> Sequence[MetricPoint]:
        """By step; above `num_points` points each is the mean of neighbours, made in the database,
        so that a long run costs no more to draw than a short one. Values that were not finite
        count for nothing."""
        mine = _of(run_id, name)
        ends = select(func.min(MetricRow.step), func.max(MetricRow.step)).where(*mine)
        with self._database.read() as session:
            first, last = session.execute(ends).one()
            if first is None or last - first < num_points:
                return self.list(run_id, name)
            width = -(-(last - first + 1) // num_points)
            bucket = (MetricRow.step - first) // width
            query = (
                select(
                    func.min(MetricRow.step),
                    func.max(MetricRow.epoch),
                    func.avg(MetricRow.value),
                    func.min(MetricRow.time),
                )
                .where(*mine)
                .group_by(bucket)
                .order_by(func.min(MetricRow.step))
            )
            return [_point(*row) for row in session.execute(query)]

    def names(self, run_id: int) -> Sequence[str]:
        """In order. One step down the index for each, whatever the number of points."""
        return self._distinct(MetricRow.name, MetricRow.run_id == run_id)

    def reached(self) -> Sequence[str]:
        """The names of all metrics that ended runs have reached."""
        return self._distinct(RunMetricRow.name, true())

    def _distinct(
        self, name: InstrumentedAttribute[str], condition: ColumnElement[bool]
    ) -> Sequence[str]:
        found: list[str] = []
        first = select(func.min(name)).where(condition)
        with self._database.read() as session:
            newest = session.scalar(first)
            while newest is not None:
                found.append(newest)
                newest = session.scalar(first.where(name > newest))
        return sorted(found)


def _of(run_id: int, name: str) -> tuple[ColumnElement[bool], ...]:
    return MetricRow.run_id == run_id, MetricRow.name == name


def _point(step: int, epoch: int, value: float | None, time: float) -> MetricPoint:
    return MetricPoint(step, epoch, nan if value is None else value, time)
