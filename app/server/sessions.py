"""How many pages are open, and how often each of them draws itself anew."""

import os

from prometheus_client import Gauge
from starlette.types import ASGIApp, Receive, Scope, Send

from app.server.measures import registry

AT_EASE = 25
"""Pages that one process refreshes as often as they ask for; a refresh takes some 20 ms of its
interpreter, which serves one page at a time (docs/evidence/pages.md)."""

FULL = 2.0
"""Processes per core, waiting or working, above which pages refresh less often."""

_open: set[int] = set()
Gauge("stageflow_open_pages", "Pages that are open in browsers", registry=registry).set_function(
    lambda: len(_open)
)


class Sessions:
    """ASGI middleware: a page is open as long as its websocket."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return await self._app(scope, receive, send)
        _open.add(id(scope))
        try:
            await self._app(scope, receive, send)
        finally:
            _open.discard(id(scope))
        return None


def refresh_interval(seconds: float) -> float:
    """The seconds between two refreshes of a page that asks for so many: more of them the more
    pages are open and the more processes ask for this machine's cores (trainings, where an agent
    works beside the dashboard), so that a click is answered as soon in a crowd."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * max(1.0, len(_open) / AT_EASE, waiting / FULL)
