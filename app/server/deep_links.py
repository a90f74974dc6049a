"""Addresses below a page ("/run/1"): Streamlit answers them with an empty page."""

import re
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

ODD = re.compile(r"[^\w-]+", re.ASCII)
LONGEST = 60  # characters


class DeepLinks:
    """ASGI middleware: who opens such an address is led to the page "Not found", or, where nothing
    stands behind the slash, to the page itself. `pages`: the paths of the pages."""

    def __init__(self, app: ASGIApp, pages: Sequence[str]) -> None:
        self._app = app
        named = "|".join(map(re.escape, pages))
        self._below = re.compile(rf"/({named})/(?!_stcore)(.*)", re.ASCII)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_opened = scope["type"] == "http" and scope["method"] == "GET" and _opens(scope)
        if is_opened and (below := self._below.fullmatch(scope["path"])):
            answer = RedirectResponse(_instead(below, scope), status_code=303)
            return await answer(scope, receive, send)
        return await self._app(scope, receive, send)


def _opens(scope: Scope) -> bool:
    """Whether a person opens the address, and not a script of the page."""
    return "text/html" in Headers(scope=scope).get("accept", "")


def _instead(below: re.Match[str], scope: Scope) -> str:
    page, rest = below.groups()
    if rest:
        return "/" + ODD.sub("-", f"{page}-{rest}")[:LONGEST]
    query = scope["query_string"].decode("latin-1")
    return f"/{page}?{query}" if query else f"/{page}"
