"""Operations as Starlette routes: validation, the service call in a thread, the answer."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from app.api import measures
from app.api.operation import JSON, Call, File, Operation
from app.api.problems import Refused, answer
from app.api.reading import read_body, read_path, read_query
from backend.bootstrap import Backend
from backend.codec import to_json
from backend.errors import NotFound
from backend.people.rights import Actor

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
Connect = Callable[[], Backend]
ACTOR = "stageflow.actor"
"""Where in an ASGI scope the gate leaves who acts."""


def routes(operations: Iterable[Operation], connect: Connect) -> list[BaseRoute]:
    """One route per path; whatever no operation answers to is a 404 in JSON."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    found = [_route(path, ways, connect) for path, ways in by_path.items()]
    return [*found, Route("/{rest:path}", _nowhere, methods=METHODS)]


def _route(path: str, ways: dict[str, Operation], connect: Connect) -> Route:
    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        operation = ways.get(method)
        started = time.perf_counter()
        try:
            response = await _answered(operation, ways, request, connect)
        except Exception as error:
            response = answer(error)
        name = operation.name if operation else "none"
        measures.observe(name, response.status_code, time.perf_counter() - started)
        return response

    return Route(path, endpoint, methods=METHODS)


async def _answered(
    operation: Operation | None, ways: dict[str, Operation], request: Request, connect: Connect
) -> Response:
    actor = acting(request)
    if operation is None:
        allowed = ", ".join(ways)
        raise Refused(
            405, f"{request.method} is not offered here", f"Use {allowed}.", {"Allow": allowed}
        )
    path = read_path(request)
    query = read_query(operation, request)
    body = await read_body(operation, request)
    return await run_in_threadpool(_call, operation, connect, actor, path, query, body)


def acting(request: Request) -> Actor:
    """Whom the gate let in. Raises `Refused` (401) where no gate stood before this route."""
    actor = request.scope.get(ACTOR)
    if not isinstance(actor, Actor):
        raise Refused(401, "nobody let you in", "Mount the routes behind app.gate.gate.Gate.")
    return actor


def _call(
    operation: Operation, connect: Connect, actor: Actor, path: Any, query: Any, body: Any
) -> Response:
    result = operation.handle(Call(connect().acting(actor), path, query, body))
    if not isinstance(result, File):
        data = to_json(operation.answer, result)
        return Response(data, status_code=operation.status, media_type=JSON)
    if isinstance(result.content, Path):
        return FileResponse(result.content, media_type=result.media, filename=result.name)
    disposition = f'attachment; filename="{_safe(result.name)}"'
    return Response(
        result.content,
        media_type=result.media,
        headers={"Content-Disposition": disposition, "X-Content-Type-Options": "nosniff"},
    )


def _safe(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)


async def _nowhere(request: Request) -> Response:
    return answer(NotFound(f"no {request.url.path[:200]}", "GET /api/v1/openapi.json lists all."))
