"""Runs in experiment trackers: where they are followed, begun and stopped."""

from dataclasses import dataclass, field

from app.api.caller import CurrentCaller
from app.api.fields import Id
from app.api.operation import router as operations
from backend.runs.history.followed import Followed
from backend.runs.run import Run

router = operations()


@dataclass(frozen=True, slots=True)
class Import:
    """`run` is MLflow's number of it, or the address of its page; `names` has ours by the names of
    its metrics, where they are not the usual ones."""

    run: str
    definition_id: Id
    names: dict[str, str] = field(default_factory=dict)


@router.post("/runs/import", status_code=201)
def import_run(caller: CurrentCaller, wanted: Import) -> Run:
    """Take over the metrics, parameters and tags of a run of the MLflow that the server's settings
    name, as an ended run of a model."""
    return caller.services().imports.bring(wanted.run, wanted.definition_id, wanted.names)


@router.get("/runs/{id:int}/trackers")
def list_trackers(caller: CurrentCaller, id: Id) -> list[Followed]:
    """Where a run is followed, and how that goes."""
    return list(caller.services().trackers.list(id))


@router.post("/runs/{id:int}/trackers/{name}")
def follow_run(caller: CurrentCaller, id: Id, name: str) -> Followed:
    """Send a run to a tracker that the server's settings name, or go on where that was given up or
    stopped. An ended run too."""
    return caller.services().trackers.follow(id, name)


@router.delete("/runs/{id:int}/trackers/{name}")
def stop_run(caller: CurrentCaller, id: Id, name: str) -> Followed:
    """Send no more of a run to a tracker; what it has stays there."""
    return caller.services().trackers.stop(id, name)
