"""Runs: submit, find, label, cancel, retry, resume, delete."""

from dataclasses import dataclass, fields
from datetime import datetime

from app.api.fields import Epochs, Id, Limit, Offset
from app.api.operation import Call, Operation
from backend.runs.attempts import StoredAttempt
from backend.runs.checkpoints import Checkpoint
from backend.runs.labels import Change
from backend.runs.listing import RunFilter, RunOrder, RunPage, RunSort
from backend.runs.run import Run
from backend.runs.spec import RunSpec
from backend.runs.states import RunState


@dataclass(frozen=True, slots=True)
class RunQuery:
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
    many as before)."""

    plan_id: Id | None = None
    epochs: Epochs = 0


def _list(call: Call) -> RunPage:
    query: RunQuery = call.query
    wanted = RunFilter(**{field.name: getattr(query, field.name) for field in fields(RunFilter)})
    order = RunOrder(query.sort, query.descending)
    return call.within(query.project_id).runs.list(wanted, query.limit, query.offset, order)


def _submit(call: Call) -> Submitted:
    new: NewRun = call.body
    return _submitted(call, call.backend.runs.submit(new.spec, new.name, new.origin))


def _submitted(call: Call, run: Run) -> Submitted:
    return Submitted(run, call.backend.runs.why_waiting(run))


def _resume(call: Call) -> Submitted:
    asked: Resumption = call.body
    return _submitted(call, call.backend.runs.resume(call.id, asked.plan_id, asked.epochs))


def _attempts(call: Call) -> list[StoredAttempt]:
    call.backend.runs.get(call.id)
    return list(call.backend.runs.attempts(call.id))


def _checkpoints(call: Call) -> list[Checkpoint]:
    call.backend.runs.get(call.id)
    return list(call.backend.runs.checkpoints(call.id))


def _label(call: Call) -> Run:
    call.backend.runs.get(call.id)
    new: Labels = call.body
    call.backend.labels.change([call.id], Change(new.starred, new.note, new.name, new.tags))
    return call.backend.runs.get(call.id)


OPERATIONS = (
    Operation(
        "list_runs",
        "GET",
        "/runs",
        "The runs that meet every condition; the newest first unless sorted otherwise.",
        _list,
        RunPage,
        query=RunQuery,
    ),
    Operation(
        "submit_run",
        "POST",
        "/runs",
        "Ask for a profile or a training. It is stored and starts when a node is free.",
        _submit,
        Submitted,
        body=NewRun,
        status=201,
    ),
    Operation(
        "get_run",
        "GET",
        "/runs/{id:int}",
        "One run.",
        lambda call: call.backend.runs.get(call.id),
        Run,
    ),
    Operation(
        "label_run",
        "PATCH",
        "/runs/{id:int}",
        "Change a run's star, note, name or tags.",
        _label,
        Run,
        body=Labels,
    ),
    Operation(
        "cancel_run",
        "POST",
        "/runs/{id:int}/cancel",
        "End a run; one that has ended stays what it is.",
        lambda call: call.backend.runs.cancel(call.id),
        Run,
    ),
    Operation(
        "retry_run",
        "POST",
        "/runs/{id:int}/retry",
        "The same again, as a new run; 409 while the run has not ended.",
        lambda call: _submitted(call, call.backend.runs.retry(call.id)),
        Submitted,
        status=201,
    ),
    Operation(
        "resume_run",
        "POST",
        "/runs/{id:int}/resume",
        "Go on from the newest checkpoint, as a new run; 409 while the run has not ended, and "
        "where it left none.",
        _resume,
        Submitted,
        body=Resumption,
        status=201,
    ),
    Operation(
        "list_attempts",
        "GET",
        "/runs/{id:int}/attempts",
        "The attempts at a run with their reasons, the first one first.",
        _attempts,
        list[StoredAttempt],
    ),
    Operation(
        "list_checkpoints",
        "GET",
        "/runs/{id:int}/checkpoints",
        "What a run can be resumed from, the newest first.",
        _checkpoints,
        list[Checkpoint],
    ),
    Operation(
        "delete_run",
        "DELETE",
        "/runs/{id:int}",
        "Take a run away for good with its log, metrics, timelines and files; what it was. "
        "409 while it has not ended.",
        lambda call: call.backend.runs.delete(call.id),
        Run,
    ),
)
