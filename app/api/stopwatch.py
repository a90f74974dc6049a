"""How long every HTTP request takes, by a few kinds of paths: ASGI middleware."""

import time

from starlette.types import ASGIApp, Receive, Scope, Send

from app.server import measures

KINDS = (
    ("/api/", "api"),
    ("/healthz", "health"),
    ("/metrics", "metrics"),
    ("/_stcore/upload_file", "upload"),
    ("/_stcore/", "streamlit"),
    ("/media/", "media"),
    ("/static/", "static"),
    ("/component/", "component"),
)


class Stopwatch:
    """Websockets, which last as long as a visit, are left out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started = time.perf_counter()
        try:
            await self._app(scope, receive, send)
        finally:
            measures.observe_http(kind_of(scope["path"]), time.perf_counter() - started)
        return None


def kind_of(path: str) -> str:
    """One of the few kinds; "page" for whatever is nothing else."""
    return next((kind for start, kind in KINDS if path.startswith(start)), "page")
