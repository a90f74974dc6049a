"""What is mounted on the server: the API, its documents and the measures."""

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
from app.api.handbook import POLICY, handbook
from app.api.openapi import document
from app.api.problems import answer

Answer = Callable[[Request], Response]


def answering(handle: Answer) -> Answer:
    """`handle`, with its errors as problems. Runs in a thread."""

    @wraps(handle)
    def inside(request: Request) -> Response:
        try:
            return handle(request)
        except Exception as error:
            return answer(error)

    return inside


@answering
def _openapi(_request: Request) -> Response:
    return Response(_document(), media_type="application/json")


@cache
def _document() -> bytes:
    return orjson.dumps(document())


@answering
def _handbook(_request: Request) -> Response:
    return HTMLResponse(_page(), headers={"Content-Security-Policy": POLICY})


@cache
def _page() -> str:
    return handbook(document())


@answering
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
