"""What is mounted on the server: the API, its documents and the measures."""

from functools import cache

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route

from app.api.handbook import POLICY, handbook
from app.api.openapi import OPERATIONS, document
from app.api.operation import NONE, PREFIX
from app.api.problems import Refused, answer
from app.api.reading import JSON
from app.server import measures
from app.server.connection import connected
from backend.errors import NotFound


def _openapi(_request: Request) -> Response:
    return Response(_document(), media_type=JSON)


@cache
def _document() -> bytes:
    return orjson.dumps(document())


def _handbook(_request: Request) -> Response:
    return HTMLResponse(_page(), headers={"Content-Security-Policy": POLICY})


@cache
def _page() -> str:
    return handbook(document())


def _metrics(_request: Request) -> Response:
    return Response(measures.exposition(connected), media_type=measures.CONTENT_TYPE)


async def _no_operation(request: Request, error: Exception) -> Response:
    """No such path, or not by this method."""
    if not isinstance(error, HTTPException) or error.status_code != 405:
        place = request.url.path[:200]
        return answer(NotFound(f"no {place}", f"GET {PREFIX}/openapi.json lists all."))
    measures.observe(NONE, 405, 0.0)
    found = [each for each in ROUTES if each.matches(request.scope)[0] is not Match.NONE]
    allowed = ", ".join(method for route in found for method in sorted(route.methods or ()))
    sentence = f"{request.method} is not offered here"
    return answer(Refused(405, sentence, f"Use {allowed}.", {"Allow": allowed}))


async def _fault(_request: Request, error: Exception) -> Response:
    return answer(error)


ROUTES: tuple[Route, ...] = (
    *OPERATIONS,
    Route(f"{PREFIX}/openapi.json", _openapi),
    Route(f"{PREFIX}/docs", _handbook),
    Route("/api", _handbook),
    Route("/metrics", _metrics),
)


def api_routes() -> list[BaseRoute]:
    """/api/v1 with its documents, /api/v1/docs for people, /metrics for Prometheus."""
    api = FastAPI(
        routes=list(ROUTES),
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _no_operation, Exception: _fault},
    )
    return [Route(path, api) for path in ("/api", "/api/{rest:path}", "/metrics")]
