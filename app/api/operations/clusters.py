"""Clusters that are kept by name, for plans."""

from dataclasses import dataclass

from app.api.caller import CurrentCaller
from app.api.fields import Id
from app.api.labels import KeptLabels
from app.api.operation import router as operations
from backend.runs.clusters import StoredCluster

router = operations()


@dataclass(frozen=True, slots=True)
class NewCluster:
    """`cluster` is a document (YAML or JSON), a preset with its servers ("dgx-h100:4") or the name
    of another kept one; `project_id` where it is kept, by default in the first that you see."""

    name: str
    cluster: str
    project_id: Id | None = None


@router.get("/clusters")
def list_clusters(caller: CurrentCaller, project_id: Id | None = None) -> list[StoredCluster]:
    """The kept clusters by name."""
    return list(caller.services(project_id).clusters.list())


@router.post("/clusters", status_code=201)
def save_cluster(caller: CurrentCaller, new: NewCluster) -> StoredCluster:
    """Keep a cluster by name. 409 where the project has the name."""
    clusters = caller.services(new.project_id).clusters
    return clusters.save(new.name, clusters.read(new.cluster))


@router.get("/clusters/{id:int}")
def get_cluster(caller: CurrentCaller, id: Id) -> StoredCluster:
    """One kept cluster."""
    return caller.services().clusters.get(id)


@router.patch("/clusters/{id:int}")
def label_cluster(caller: CurrentCaller, id: Id, new: KeptLabels) -> StoredCluster:
    """Change the name, note or tags of a kept cluster. 409 where the project has the name."""
    return caller.services().clusters.label(id, new.change)


@router.delete("/clusters/{id:int}")
def delete_cluster(caller: CurrentCaller, id: Id) -> StoredCluster:
    """Delete a kept cluster for good; the answer is what it was. Plans made for it stay."""
    return caller.services().clusters.delete(id)
