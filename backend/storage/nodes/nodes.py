"""Nodes in SQL: alive by the database's clock."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError

from backend.cluster.cluster import Device
from backend.codec import to_plain
from backend.runs.dispatch.nodes import Node
from backend.runs.use import Use
from backend.storage.database import Database
from backend.storage.look_up import value_of
from backend.storage.tables.node_tables import NodeRow
from backend.storage.tables.values import DatabaseClock

Devices = tuple[Device, ...]
Uses = tuple[Use, ...]


class SqlNodes:
    """`lease` in seconds: a node whose last sign of life is older is not alive."""

    def __init__(self, database: Database, lease: float) -> None:
        self._database, self._lease = database, lease

    def beat(
        self,
        name: str,
        devices: Devices = (),
        versions: Mapping[str, str] | None = None,
        use: Uses = (),
        address: str = "",
        run_id: int | None = None,
    ) -> None:
        """The agent of node `name` is alive, has these devices, runs these versions, uses that
        much of the machine, is reached at `address`, and was started for that run alone; noted
        by the database's clock."""
        row = {
            "devices": to_plain(Devices, devices),
            "versions": dict(versions or {}),
            "use": to_plain(Uses, use),
            "address": address,
            "run_id": run_id,
        }
        try:
            self._write(name, row)
        except IntegrityError:  # another one of this name made the row just now
            self._write(name, row)

    def leave(self, name: str) -> None:
        """The agent of the node has ended by itself: nobody need wait for a lease."""
        with self._database.write() as session:
            session.execute(delete(NodeRow).where(NodeRow.name == name))

    def lost(self, name: str) -> None:
        """The connection to the agent of the node is lost: the node is not alive up to its next
        sign of life."""
        with self._database.write() as session:
            over = (session.scalar(select(DatabaseClock())) or 0.0) - self._lease
            aged = update(NodeRow).where(NodeRow.name == name, NodeRow.heartbeat > over)
            session.execute(aged.values(heartbeat=over))

    def list(self) -> Sequence[Node]:
        """The freshest sign of life first."""
        query = select(NodeRow, DatabaseClock() - NodeRow.heartbeat).order_by(
            NodeRow.heartbeat.desc()
        )
        with self._database.read() as session:
            return [
                value_of(
                    Node,
                    row,
                    alive=age < self._lease,
                    heartbeat_at=datetime.fromtimestamp(row.heartbeat, UTC),
                    use=row.use or [],
                    address=row.address or "",
                    ahead=row.ahead or 0.0,
                )
                for row, age in session.execute(query)
            ]

    def alive(self, run_id: int | None = None) -> Sequence[Node]:
        """Those of `list` that are alive and take any run, or were started for that one."""
        return [node for node in self.list() if node.alive and node.run_id in (None, run_id)]

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        with self._database.write() as session:
            now = session.scalar(select(DatabaseClock())) or 0.0
            ahead = time.time() - now
            session.merge(NodeRow(name=name, heartbeat=now, ahead=ahead, **values))
