"""Log lines in SQL, numbered through per run."""

from collections.abc import Iterator, Sequence

from sqlalchemy import func, insert, select

from backend.runs.attempts.fence import Fence
from backend.runs.history.records import LogLine, LogText
from backend.storage.database import Database
from backend.storage.fence import hold_once
from backend.storage.tables.tables import LogRow, RunRow

MAX_CHARACTERS = 10_000


class SqlLogs:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, fence: Fence, lines: Sequence[LogText], batch: int = 0) -> None:
        """`batch` numbers the writes of an attempt from 1: one that comes again changes
        nothing; 0 = not numbered. So in the other stores."""
        if not lines:
            return
        with self._database.write() as session:
            last = hold_once(session, fence, batch, last_seq=RunRow.last_seq + len(lines))
            if last is None:
                return
            first = last - len(lines) + 1
            rows = [
                {"run_id": fence.run_id, "seq": seq, "time": time, "rank": rank, "text": cut(text)}
                for seq, (rank, time, text) in enumerate(lines, start=first)
            ]
            session.execute(insert(LogRow), rows)

    def list(self, run_id: int, after: int = 0, limit: int = 1000) -> Sequence[LogLine]:
        """Up to `limit` lines whose sequence number is above `after`, in order."""
        query = (
            select(LogRow.seq, LogRow.time, LogRow.rank, LogRow.text)
            .where(LogRow.run_id == run_id, LogRow.seq > after)
            .order_by(LogRow.seq)
            .limit(limit)
        )
        with self._database.read() as session:
            return [LogLine(*row) for row in session.execute(query)]

    def newest(self, run_id: int) -> int:
        """The sequence number of the run's last line; 0 where it has none."""
        with self._database.read() as session:
            found = session.scalar(select(func.max(LogRow.seq)).where(LogRow.run_id == run_id))
        return found or 0

    def every(self, run_id: int, after: int = 0) -> Iterator[LogLine]:
        """Every line whose sequence number is above `after`, read in portions."""
        while lines := self.list(run_id, after):
            yield from lines
            after = lines[-1].seq


def cut(text: str) -> str:
    """A line short enough to show; says how much was left out."""
    left_out = len(text) - MAX_CHARACTERS
    return text if left_out <= 0 else f"{text[:MAX_CHARACTERS]}… ({left_out:,} more characters)"
