"""Clusters in SQL."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from backend.cluster.cluster import Cluster
from backend.codec import to_plain
from backend.runs.clusters import ClusterNameTaken, StoredCluster
from backend.storage.database import Database
from backend.storage.look_up import look_up, value_of
from backend.storage.quotas import admit
from backend.storage.tables.cluster_tables import ClusterRow


class SqlClusters:
    """A project has one of each name, told apart without regard to case."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, cluster: Cluster, project_id: int) -> StoredCluster:
        """Raises `ClusterNameTaken`."""
        row = ClusterRow(
            project_id=project_id,
            name=name,
            key=name.casefold(),
            cluster=to_plain(Cluster, cluster),
            created_at=datetime.now(UTC),
        )
        with _named(name), self._database.write() as session:
            admit(session.connection(), project_id)
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

    def rename(self, cluster_id: int, name: str) -> StoredCluster:
        """Raises `NotFound` and `ClusterNameTaken`."""
        with _named(name), self._database.write() as session:
            row = look_up(session, ClusterRow, cluster_id)
            row.name, row.key = name, name.casefold()
            session.flush()
            return value_of(StoredCluster, row)

    def delete(self, cluster_id: int) -> None:
        """Raises `NotFound`."""
        with self._database.write() as session:
            session.delete(look_up(session, ClusterRow, cluster_id))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Raises `ClusterNameTaken` where the database says that the name is there."""
    try:
        yield
    except IntegrityError:
        raise ClusterNameTaken(
            f"the project has a cluster {name!r}",
            "Choose another name, or rename or delete that one first.",
        ) from None
