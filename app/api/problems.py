"""Errors as answers: what is wrong, what to do, and the status that says whose turn it is."""

from collections.abc import Mapping
from secrets import token_hex

from fastapi import Response
from fastapi.exceptions import RequestValidationError

from app.log import logger
from app.server.problem import Problem
from app.server.searchers import SearcherEnded
from backend.codec import first_error, to_json
from backend.errors import InvalidInput, NotFound, StageflowError
from backend.few_at_once import TooBusy
from backend.people.project import ProjectArchived, QuotaReached
from backend.queue.messages import QueueUnreachable
from backend.runs.history.labels import NameTaken
from backend.runs.history.views import ViewNameTaken
from backend.runs.plans import PlanInUse
from backend.runs.profiles import ProfileInUse
from backend.runs.states import IllegalMove
from backend.services.people.access import NotAllowed
from backend.services.runs.recovery import NothingToResume
from backend.services.runs.runs import NotEnded, NotLive
from backend.storage.errors import DatabaseUnreachable, FolderUnusable, SchemaOutdated, StorageFull

MEDIA = "application/problem+json"
STATUSES: tuple[tuple[type[StageflowError], int], ...] = (
    (NotFound, 404),
    (NotAllowed, 403),
    (NotEnded, 409),
    (NotLive, 409),
    (ProjectArchived, 409),
    (QuotaReached, 409),
    (NothingToResume, 409),
    (NameTaken, 409),
    (ViewNameTaken, 409),
    (PlanInUse, 409),
    (ProfileInUse, 409),
    (IllegalMove, 409),
    (StorageFull, 507),
    (FolderUnusable, 503),
    (DatabaseUnreachable, 503),
    (SchemaOutdated, 503),
    (QueueUnreachable, 503),
    (TooBusy, 503),
    (SearcherEnded, 503),
)
UNUSABLE = 422
IN_JSON = {
    "dataclass_type": "Input should be an object",
    "dict_type": "Input should be an object",
    "list_type": "Input should be a valid array",
    "tuple_type": "Input should be a valid array",
    "none_required": "Input should be null",
}
"""What Pydantic says of JSON; FastAPI lets it check the values of Python that JSON became."""

log = logger("api")


class Refused(StageflowError):
    """A request that is answered with a certain status before any service sees it."""

    def __init__(
        self, status: int, message: str, advice: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, advice)
        self.status = status
        self.headers = headers or {}


def answer(error: Exception) -> Response:
    """The problem as JSON; a fault of ours is logged under the number that is told."""
    match error:
        case Refused():
            return _response(error, error.status, error.headers)
        case StageflowError():
            return _response(error, status_of(error))
        case RequestValidationError():
            return _response(InvalidInput(_first(error)), UNUSABLE)
        case _:
            return _response(_ours(error), 500)


def status_of(error: StageflowError) -> int:
    """Whatever is not in the table is a value that cannot be used."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), UNUSABLE)


def _first(fault: RequestValidationError) -> str:
    """The first value that cannot be used: its name in the query or the body, and why."""
    error = first_error(fault.errors())
    place = ".".join(str(part) for part in error["loc"][1:]) or "value"
    return f"{place}: {IN_JSON.get(error['type'], error['msg'])}"


class ServerFault(StageflowError):
    """Something of ours broke."""


def _ours(error: Exception) -> ServerFault:
    number = token_hex(4)
    log.error("api failed", error_id=number, exc_info=error)
    return ServerFault(
        "this request failed because of an error in Stageflow",
        f"Report error {number}: the server's log has the details under that number.",
    )


def _response(
    error: StageflowError, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    problem = Problem(str(error), error.advice, type(error).__name__, status)
    return Response(
        to_json(Problem, problem), status_code=status, media_type=MEDIA, headers=dict(headers or {})
    )
