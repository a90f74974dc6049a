"""What nodes and runs use, over time, in SQL."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from backend.codec import from_plain, to_plain
from backend.runs.attempts.fence import Fence
from backend.runs.use import RESOLUTIONS, Use, UsePoint, joined
from backend.storage.database import Database
from backend.storage.fence import held
from backend.storage.tables.use_tables import NodeUseRow, RunUseRow

Uses = tuple[Use, ...]
Points = Iterable[tuple[int, UsePoint]]
"""Each with the number of its resolution, as `UseHistory.add` gives them."""


class SqlUse:
    def __init__(self, database: Database) -> None:
        self._database = database

    def keep_of_node(self, node: str, points: Points) -> None:
        """Keep points of a node in place of the oldest; what is older than the longest history goes
        away, of nodes that are gone as well."""
        with self._database.write() as session:
            for level, point in points:
                _keep(session, NodeUseRow, {"node": node}, level, point)
                if level == len(RESOLUTIONS) - 1:
                    old = NodeUseRow.time < point.time - RESOLUTIONS[level].span
                    session.execute(delete(NodeUseRow).where(old))

    def keep_of_run(self, fence: Fence, points: Points) -> None:
        """The same of a run. Raises `LeaseLost`."""
        with held(self._database, fence) as session:
            for level, point in points:
                _keep(session, RunUseRow, {"run_id": fence.run_id}, level, point)

    def of_node(self, node: str, since: float = 0.0) -> Sequence[UsePoint]:
        """From Unix second `since` on, in order."""
        return self._history(NodeUseRow, node, since)

    def of_run(self, run_id: int, since: float = 0.0) -> Sequence[UsePoint]:
        """Likewise."""
        return self._history(RunUseRow, run_id, since)

    def _history(
        self, table: type[NodeUseRow | RunUseRow], of: str | int, since: float
    ) -> Sequence[UsePoint]:
        owner = table.node if issubclass(table, NodeUseRow) else table.run_id
        query = select(table.level, table.time, table.use).where(owner == of, table.time >= since)
        found: dict[int, list[UsePoint]] = defaultdict(list)
        with self._database.read() as session:
            for level, time, use in session.execute(query):
                found[level].append(UsePoint(time, from_plain(Uses, use)))
        return joined(found)


def _keep(
    session: Session,
    table: type[NodeUseRow | RunUseRow],
    owner: dict[str, object],
    level: int,
    point: UsePoint,
) -> None:
    slot, use = RESOLUTIONS[level].slot(point.time), to_plain(Uses, point.uses)
    session.merge(table(**owner, level=level, slot=slot, time=point.time, use=use))
