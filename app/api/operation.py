"""What every operation of the REST API has in common: its path and method are its decorator's, its
name is its function's, its summary the docstring, its answer's type the one that is returned."""

import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, get_type_hints

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Path
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from app.api.problems import answer
from app.api.reading import JSON, checked
from app.server import measures
from app.server.problem import Problem
from backend.codec import to_json

PREFIX = "/api/v1"
NONE = "none"
"""The operation of a request that no operation answers."""


class Operation(APIRoute):
    """A route whose errors are problems and whose duration is measured."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        status = options.get("status_code") or 200
        options["summary"] = options.get("summary") or " ".join((endpoint.__doc__ or "").split())
        options["operation_id"] = endpoint.__name__
        options["tags"] = [path.removeprefix(PREFIX).split("/")[1]]
        problem = {"model": Problem, "description": "What went wrong"}
        options["responses"] = {**options["responses"], "default": problem}
        super().__init__(path, _answering(endpoint, status), **options)
        self.description = ""  # the docstring is the summary

    @property
    def body(self) -> Any:
        """The type of what it takes as JSON, None where it takes nothing."""
        return self.body_field.field_info.annotation if self.body_field else None

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """That of FastAPI, with stricter reading, problems and measures."""
        handle = super().get_route_handler()
        known = [
            each.alias
            for each in get_flat_params(self.dependant)
            if not isinstance(each.field_info, Path)
        ]

        async def measured(request: Request) -> Response:
            started = time.perf_counter()
            try:
                response = await handle(await checked(request, known, self.body))
            except Exception as error:
                response = answer(error)
            measures.observe(self.name, response.status_code, time.perf_counter() - started)
            return response

        return measured

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A HEAD is answered as a GET is; the server leaves the body out."""
        if scope["method"] == "HEAD" and self.methods == {"GET"}:
            return await self.app(scope, receive, send)
        return await super().handle(scope, receive, send)


def router() -> APIRouter:
    """For the operations of one noun."""
    return APIRouter(prefix=PREFIX, route_class=Operation)


def _answering(handle: Callable[..., Any], status: int) -> Callable[..., Response]:
    """`handle`, which makes the JSON too: all of it in one thread, none in the event loop."""
    kind = get_type_hints(handle)["return"]

    @wraps(handle)
    def inside(**given: Any) -> Response:
        found = handle(**given)
        if isinstance(found, Response):
            return found
        return Response(to_json(kind, found), status_code=status, media_type=JSON)

    return inside
