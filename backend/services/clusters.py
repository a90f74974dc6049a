"""Clusters that a team keeps by name."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.cluster.cluster import Cluster
from backend.cluster.document import read_cluster
from backend.errors import InvalidInput, NotFound
from backend.people.rights import Right
from backend.runs.clusters import MAX_NAME, StoredCluster, cluster_title
from backend.runs.history.labels import Change, named
from backend.services.people.access import Access
from backend.storage.clusters import SqlClusters

ADVICE = "Give YAML, a preset (dgx-h100:4), or a name of: page Nodes, or stageflow clusters list"


@dataclass(frozen=True)
class ClusterService:
    """`listed` shows the chosen project's, `store` all that the actor sees."""

    _store: SqlClusters
    _listed: SqlClusters
    _access: Access

    def save(self, name: str, cluster: Cluster) -> StoredCluster:
        """Keep a cluster in the chosen project. Raises `InvalidInput` on a bad name, and
        `NameTaken`."""
        title, project = cluster_title(name), self._access.home
        self._access.require(Right.EDIT, "save", f"cluster {title}", project)
        return self._store.add(title, cluster, project)

    def label(self, cluster_id: int, change: Change) -> StoredCluster:
        """Change name, note or tags. Raises `NotFound`, `InvalidInput` and `NameTaken`."""
        kept, new = self.get(cluster_id), named(change, cluster_title)
        self._access.require(Right.EDIT, "label", f"cluster {cluster_id}", kept.project_id)
        return self._store.label(cluster_id, new)

    def delete(self, cluster_id: int) -> StoredCluster:
        """What it was. Raises `NotFound`."""
        kept = self.get(cluster_id)
        self._access.require(Right.EDIT, "delete", f"cluster {cluster_id}", kept.project_id)
        self._store.delete(cluster_id)
        return kept

    def get(self, cluster_id: int) -> StoredCluster:
        """Raises `NotFound`."""
        return self._store.get(cluster_id)

    def list(self) -> Sequence[StoredCluster]:
        """By name."""
        return self._listed.list()

    def find(self, name: str) -> Cluster:
        """The kept cluster of this name, of the chosen project before others. Raises `NotFound`,
        and `InvalidInput` where several other projects have the name."""
        named = self._listed.named(name)
        found = [kept for kept in named if kept.project_id == self._access.home] or named
        if len(found) > 1:
            raise InvalidInput(
                f"{len(found)} projects have a cluster {name!r}", "Choose a project."
            )
        if not found:
            raise NotFound(f"no kept cluster {name!r:.100}", ADVICE)
        return found[0].cluster

    def read(self, text: str) -> Cluster:
        """What `find` finds where `text` could be a name, else what `read_cluster` reads in it."""
        plain = text.strip()
        is_name = plain and plain.isprintable() and ":" not in plain and len(plain) <= MAX_NAME
        return self.find(plain) if is_name else read_cluster(text)
