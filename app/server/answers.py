"""What a server answers to a client of its REST API, or why nothing came."""

from http.client import HTTPResponse
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from app.server.problem import Problem
from backend.codec import from_json
from backend.errors import InvalidInput, StageflowError

TIMEOUT = 60.0


class ApiProblem(StageflowError):
    """The server refused. `status` is the HTTP status, `kind` names the error."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.error, problem.advice)
        self.status = problem.status
        self.kind = problem.kind


class ServerUnreachable(StageflowError):
    """Nobody answers at the address."""


def opened(request: Request) -> HTTPResponse:
    """The answer, of which nothing is read yet. Raises `ApiProblem`, `ServerUnreachable`."""
    try:
        answer: HTTPResponse = urlopen(request, timeout=TIMEOUT)
        return answer
    except HTTPError as fault:
        raise ApiProblem(_problem(fault)) from None
    except URLError as fault:
        raise ServerUnreachable(
            f"no answer from {request.host}: {fault.reason}", "Is the dashboard up? stageflow up"
        ) from None


def _problem(fault: HTTPError) -> Problem:
    try:
        return from_json(Problem, fault.read())
    except InvalidInput:
        return Problem(f"the server answered {fault.code} {fault.reason}", "", "Http", fault.code)
