"""Span batches in SQL: too many spans for a row each."""

from collections.abc import Sequence
from typing import cast

from sqlalchemy import func, insert, select

from backend.runs.attempts.fence import Fence
from backend.runs.history.records import SpanBatch, TimelineKind
from backend.storage.database import Database
from backend.storage.fence import hold_once
from backend.storage.tables.tables import SpanBatchRow


class SqlSpans:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, fence: Fence, batches: Sequence[SpanBatch], batch: int = 0) -> None:
        rows = [
            {
                "run_id": fence.run_id,
                "kind": spans.kind,
                "attempt": fence.attempt,
                "segment": spans.segment,
                "rank": spans.rank,
                "num_spans": spans.num_spans,
                "data": spans.data,
            }
            for spans in batches
        ]
        with self._database.write() as session:
            if hold_once(session, fence, batch) is not None and rows:
                session.execute(insert(SpanBatchRow), rows)

    def list(self, run_id: int, kind: TimelineKind, segment: int) -> Sequence[SpanBatch]:
        mine = (
            SpanBatchRow.run_id == run_id,
            SpanBatchRow.kind == kind,
            SpanBatchRow.segment == segment,
        )
        newest = select(func.max(SpanBatchRow.attempt)).where(*mine).scalar_subquery()
        query = (
            select(SpanBatchRow)
            .where(*mine, SpanBatchRow.attempt == newest)
            .order_by(SpanBatchRow.rank, SpanBatchRow.id)
        )
        with self._database.read() as session:
            return [_batch(row) for row in session.scalars(query)]

    def segments(self, run_id: int, kind: TimelineKind) -> Sequence[int]:
        query = (
            select(SpanBatchRow.segment)
            .where(SpanBatchRow.run_id == run_id, SpanBatchRow.kind == kind)
            .distinct()
            .order_by(SpanBatchRow.segment)
        )
        with self._database.read() as session:
            return session.scalars(query).all()


def _batch(row: SpanBatchRow) -> SpanBatch:
    kind = cast(TimelineKind, row.kind)
    return SpanBatch(kind, row.rank, row.segment, row.data, row.num_spans)
