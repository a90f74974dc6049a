"""Span batches in SQL: too many spans for a row each."""

from collections.abc import Sequence

from sqlalchemy import func, insert, select

from backend.pipeline.columns import decode
from backend.pipeline.timeline import Timeline
from backend.runs.attempts.fence import Fence
from backend.runs.history.records import SpanBatch, TimelineKind
from backend.storage.database import Database
from backend.storage.fence import hold_once
from backend.storage.look_up import value_of
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
        """Those of the newest attempt that has any, by rank."""
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
        return [value_of(SpanBatch, row) for row in self._database.rows(query)]

    def timeline(
        self, run_id: int, kind: TimelineKind, segment: int | None = None
    ) -> Timeline | None:
        """The spans of one segment (None = the last one); None where there are none."""
        if segment is None:
            segment = max(self.segments(run_id, kind), default=0)
        found = Timeline.joined([decode(batch.data) for batch in self.list(run_id, kind, segment)])
        return found if len(found) else None

    def segments(self, run_id: int, kind: TimelineKind = "measured") -> Sequence[int]:
        """The segments that have a timeline, ascending."""
        query = (
            select(SpanBatchRow.segment)
            .where(SpanBatchRow.run_id == run_id, SpanBatchRow.kind == kind)
            .distinct()
            .order_by(SpanBatchRow.segment)
        )
        return self._database.rows(query)
