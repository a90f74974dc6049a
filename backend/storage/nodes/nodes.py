"""Nodes in SQL: alive by the database's clock."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError

from backend.cluster.cluster import Device
from backend.codec import from_plain, to_plain
from backend.runs.dispatch.nodes import Node, Use
from backend.storage.database import Database
from backend.storage.tables.node_tables import NodeRow
from backend.storage.tables.values import DatabaseClock

Devices = tuple[Device, ...]
Uses = tuple[Use, ...]


class SqlNodes:
    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(
        self,
        name: str,
        devices: Devices,
        versions: Mapping[str, str],
        use: Uses,
        address: str = "",
    ) -> None:
        row = {
            "devices": to_plain(Devices, devices),
            "versions": dict(versions),
            "use": to_plain(Uses, use),
            "address": address,
        }
        try:
            self._write(name, row)
        except IntegrityError:  # another one of this name made the row just now
            self._write(name, row)

    def leave(self, name: str) -> None:
        with self._database.write() as session:
            session.execute(delete(NodeRow).where(NodeRow.name == name))

    def lost(self, name: str, lease: float) -> None:
        with self._database.write() as session:
            over = (session.scalar(select(DatabaseClock())) or 0.0) - lease
            aged = update(NodeRow).where(NodeRow.name == name, NodeRow.heartbeat > over)
            session.execute(aged.values(heartbeat=over))

    def list(self, lease: float) -> Sequence[Node]:
        query = select(NodeRow, DatabaseClock() - NodeRow.heartbeat).order_by(
            NodeRow.heartbeat.desc()
        )
        with self._database.read() as session:
            return [
                Node(
                    name=row.name,
                    devices=from_plain(Devices, row.devices),
                    alive=age < lease,
                    heartbeat_at=datetime.fromtimestamp(row.heartbeat, UTC),
                    versions=row.versions,
                    use=from_plain(Uses, row.use or []),
                    address=row.address or "",
                    ahead=row.ahead or 0.0,
                )
                for row, age in session.execute(query)
            ]

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        with self._database.write() as session:
            now = session.scalar(select(DatabaseClock())) or 0.0
            ahead = time.time() - now
            session.merge(NodeRow(name=name, heartbeat=now, ahead=ahead, **values))
