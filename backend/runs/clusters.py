"""Clusters as they are kept, by name."""

from dataclasses import dataclass
from datetime import datetime

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput

MAX_NAME = 80


@dataclass(frozen=True, slots=True)
class StoredCluster:
    """One cluster of a project. Plans hold a copy: they stay as they are when it is deleted."""

    id: int
    name: str
    cluster: Cluster
    created_at: datetime
    project_id: int
    note: str = ""
    tags: tuple[str, ...] = ()


def cluster_title(name: str) -> str:
    """`name` without blanks around it. Raises `InvalidInput` where it cannot name a cluster: with
    a colon it would be read as a preset ("dgx-h100:4"), a pool's machines or YAML."""
    title = name.strip()
    if not title or len(title) > MAX_NAME or not title.isprintable() or ":" in title:
        raise InvalidInput(
            f"{name[:MAX_NAME]!r} cannot name a cluster",
            f"Use 1 to {MAX_NAME} printable characters without a colon.",
        )
    return title
