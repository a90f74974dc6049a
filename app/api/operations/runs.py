"""Runs: submit, find, label, cancel, retry, resume, delete."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel

from app.api.caller import CurrentCaller
from app.api.fields import Epochs, Id, Limit, Offset
from app.api.operation import router as operations
from backend.comparison.shared_cores import Expectation
from backend.comparison.stragglers import Paces
from backend.runs.attempts.checkpoints import Checkpoint
from backend.runs.history.labels import Change
from backend.runs.history.listing import RunFilter, RunOrder, RunPage, RunSort
from backend.runs.history.records import StoredAttempt
from backend.runs.request.spec import RunSpec
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.services.runs.runs import RunService

router = operations()


class RunQuery(BaseModel, frozen=True):
    """What the runs must meet (see `RunFilter`), their order, and which of them to give.
    `states` may be given several times; times are ISO 8601 with a zone."""

    states: tuple[RunState, ...] = ()
    kind: str | None = None
    text: str = ""
    definition_id: Id | None = None
    plan_id: Id | None = None
    owner: str | None = None
    tag: str | None = None
    starred: bool = False
    since: datetime | None = None
    until: datetime | None = None
    min_accuracy: float | None = None
    max_accuracy: float | None = None
    metric: str | None = None
    min_metric: float | None = None
    max_metric: float | None = None
    project_id: Id | None = None
    sort: RunSort = RunSort.CREATED
    descending: bool = True
    limit: Limit = 100
    offset: Offset = 0


@dataclass(frozen=True, slots=True)
class NewRun:
    """`origin` is the run that this one is made from, if any."""

    spec: RunSpec
    name: str = ""
    origin: Id | None = None


@dataclass(frozen=True, slots=True)
class Labels:
    """What is null or absent stays as it is; `tags` replaces all tags."""

    starred: bool | None = None
    note: str | None = None
    name: str | None = None
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """`waiting`: why it does not start at once, for people; null where it only waits its turn."""

    run: Run
    waiting: str | None


@dataclass(frozen=True, slots=True)
class Resumption:
    """`plan_id` of a saved plan to go on with (null = the run's own); `epochs` in all (0 = as
    many as before); `best`: from the checkpoint of the best evaluation, not from the newest;
    `learning_rate` from here on (null = as before)."""

    plan_id: Id | None = None
    epochs: Epochs = 0
    best: bool = False
    learning_rate: float | None = None


@router.get("/runs")
def list_runs(caller: CurrentCaller, query: Annotated[RunQuery, Query()]) -> RunPage:
    """The runs that meet every condition; the newest first unless sorted otherwise."""
    wanted = RunFilter(**{field.name: getattr(query, field.name) for field in fields(RunFilter)})
    order = RunOrder(query.sort, query.descending)
    return caller.services(query.project_id).runs.list(wanted, query.limit, query.offset, order)


@router.post("/runs", status_code=201)
def submit_run(caller: CurrentCaller, new: NewRun) -> Submitted:
    """Ask for a profile or a training. It is stored and starts when a node is free."""
    runs = caller.services().runs
    return _submitted(runs, runs.submit(new.spec, new.name, new.origin))


@router.get("/runs/{id:int}")
def get_run(caller: CurrentCaller, id: Id) -> Run:
    """One run."""
    return caller.services().runs.get(id)


@router.get("/runs/{id:int}/expected")
def get_expected(caller: CurrentCaller, id: Id) -> Expectation:
    """What was predicted of a run, what others took of the cores of its ranks, and where that is
    much the prediction at the share that the ranks had."""
    runs = caller.runs(id)
    return runs.expected(runs.get(id))


@router.get("/runs/{id:int}/paces")
def get_paces(caller: CurrentCaller, id: Id) -> Paces | None:
    """How long each rank computes beside its plan, and the cluster with the speeds of its devices
    as measured; null while too little was measured, or the run has no plan of its own."""
    runs = caller.runs(id)
    return runs.paces(runs.get(id))


@router.get("/runs/{id:int}/watched-in-vain")
def get_watched_in_vain(caller: CurrentCaller, id: Id) -> str | None:
    """That evaluations do not tell the metric that the run watches, so that patience and the best
    checkpoint have no effect; null where they do, and before the first evaluation."""
    runs = caller.runs(id)
    return runs.watched_in_vain(runs.get(id))


@router.patch("/runs/{id:int}")
def label_run(caller: CurrentCaller, id: Id, new: Labels) -> Run:
    """Change a run's star, note, name or tags."""
    backend = caller.services()
    backend.runs.get(id)
    backend.labels.change([id], Change(new.starred, new.note, new.name, new.tags))
    return backend.runs.get(id)


@router.post("/runs/{id:int}/cancel")
def cancel_run(caller: CurrentCaller, id: Id) -> Run:
    """End a run; one that has ended stays what it is."""
    return caller.services().runs.cancel(id)


@router.post("/runs/{id:int}/stacks")
def show_stacks(caller: CurrentCaller, id: Id) -> Run:
    """Let every rank write the stacks of its threads into the run's log, within about a second;
    409 where the run is not live."""
    return caller.services().runs.show_stacks(id)


@router.post("/runs/{id:int}/retry", status_code=201)
def retry_run(caller: CurrentCaller, id: Id) -> Submitted:
    """The same again, as a new run; 409 while the run has not ended."""
    runs = caller.services().runs
    return _submitted(runs, runs.retry(id))


@router.post("/runs/{id:int}/resume", status_code=201)
def resume_run(caller: CurrentCaller, id: Id, asked: Resumption) -> Submitted:
    """Go on from the newest checkpoint, as a new run; 409 while the run has not ended, and where
    it left none."""
    runs = caller.services().runs
    resumed = runs.resume(
        id, asked.plan_id, asked.epochs, best=asked.best, learning_rate=asked.learning_rate
    )
    return _submitted(runs, resumed)


@router.get("/runs/{id:int}/attempts")
def list_attempts(caller: CurrentCaller, id: Id) -> list[StoredAttempt]:
    """The attempts at a run with their reasons, the first one first."""
    return list(caller.runs(id).attempts(id))


@router.get("/runs/{id:int}/checkpoints")
def list_checkpoints(caller: CurrentCaller, id: Id) -> list[Checkpoint]:
    """What a run can be resumed from, the newest first."""
    return list(caller.runs(id).checkpoints.list(id))


@router.delete("/runs/{id:int}")
def delete_run(caller: CurrentCaller, id: Id) -> Run:
    """Delete a run for good with its log, metrics, timelines and files; the answer is what it was.
    409 while it has not ended."""
    return caller.services().runs.delete(id)


def _submitted(runs: RunService, run: Run) -> Submitted:
    return Submitted(run, runs.why_waiting(run))
