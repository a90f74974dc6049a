"""Clusters in SQL."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import select

from backend.cluster.cluster import Cluster
from backend.codec import to_plain
from backend.runs.clusters import StoredCluster
from backend.runs.history.labels import Change
from backend.storage.database import Database
from backend.storage.labels import check_free, label
from backend.storage.look_up import look_up, value_of
from backend.storage.tables.cluster_tables import ClusterRow


class SqlClusters:
    """A project has one of each name, told apart without regard to case."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, cluster: Cluster, project_id: int) -> StoredCluster:
        """Raises `NameTaken`."""
        row = ClusterRow(
            project_id=project_id,
            name=name,
            key=name.casefold(),
            cluster=to_plain(Cluster, cluster),
            created_at=datetime.now(UTC),
        )
        with self._database.write() as session:
            check_free(session, ClusterRow, project_id, name)
            session.add(row)
            session.flush()
            return value_of(StoredCluster, row)

    def get(self, cluster_id: int) -> StoredCluster:
        """Raises `NotFound`."""
        return value_of(StoredCluster, self._database.get(ClusterRow, cluster_id))

    def named(self, name: str) -> Sequence[StoredCluster]:
        """Those of this name, one a project at most."""
        query = select(ClusterRow).where(ClusterRow.key == name.strip().casefold())
        return [value_of(StoredCluster, row) for row in self._database.rows(query)]

    def list(self) -> Sequence[StoredCluster]:
        """By name."""
        query = select(ClusterRow).order_by(ClusterRow.key, ClusterRow.id)
        return [value_of(StoredCluster, row) for row in self._database.rows(query)]

    def label(self, cluster_id: int, change: Change) -> StoredCluster:
        """Raises `NotFound` and `NameTaken`."""
        with self._database.write() as session:
            return value_of(StoredCluster, label(session, ClusterRow, cluster_id, change))

    def delete(self, cluster_id: int) -> None:
        """Raises `NotFound`."""
        with self._database.write() as session:
            session.delete(look_up(session, ClusterRow, cluster_id))
