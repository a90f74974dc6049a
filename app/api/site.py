"""What is mounted on the server: the API, its documents and the measures, behind one gate."""

from collections.abc import Callable
from functools import cache, wraps

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from app.api import measures
from app.api.catalog import OPERATIONS
from app.api.connection import connected
from app.api.endpoint import routes
from app.api.gate import admit
from app.api.handbook import POLICY, handbook
from app.api.openapi import document
from app.api.problems import answer
from backend.settings import load_settings

Answer = Callable[[Request], Response]


def gated(handle: Answer) -> Answer:
    """`handle` for those who may come in; a problem for the others. Runs in a thread."""

    @wraps(handle)
    def inside(request: Request) -> Response:
        try:
            admit(request, load_settings())
            return handle(request)
        except Exception as error:
            return answer(error)

    return inside


@gated
def _openapi(_request: Request) -> Response:
    return Response(_document(), media_type="application/json")


@cache
def _document() -> bytes:
    return orjson.dumps(document())


@gated
def _handbook(_request: Request) -> Response:
    return HTMLResponse(_page(), headers={"Content-Security-Policy": POLICY})


@cache
def _page() -> str:
    return handbook(document())


@gated
def _metrics(_request: Request) -> Response:
    return Response(measures.exposition(connected), media_type=measures.CONTENT_TYPE)


def api_routes() -> list[BaseRoute]:
    """/api/v1 with its documents, /api/v1/docs for people, /metrics for Prometheus."""
    return [
        Route("/metrics", _metrics),
        Mount(
            "/api/v1",
            routes=[
                Route("/openapi.json", _openapi),
                Route("/docs", _handbook),
                *routes(OPERATIONS, connected),
            ],
        ),
        Route("/api", _handbook),
        Mount("/api", routes=routes((), connected)),
    ]
