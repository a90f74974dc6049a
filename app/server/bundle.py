"""The bundle of Streamlit's own pages, answered from memory: a first page asks for a hundred files.

Their names hold a digest of what is in them, so that a browser keeps them for good. What our pages
draw with is named in the answer that brings a page: the browser fetches it beside the rest, not
when it meets the first field. Streamlit may name its parts otherwise; then that waits as before.
"""

import mimetypes
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = Path(st.__file__).parent / "static"
SCRIPTS = FOLDER / "static" / "js"
KEPT = "public, immutable, max-age=31536000"  # seconds: a year
PARTS = ("TextInput", "ButtonGroup", "Button", "Checkbox", "PageLink", "Progress", "Pagination")
IMPORT = re.compile(r'(?:from|import)"\./([^"]+\.js)"')


class Bundle:
    """ASGI middleware below the gate; what is no file of the bundle is passed on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._files = frozenset(
            "/" + file.relative_to(FOLDER).as_posix() for file in FOLDER.glob("static/*/*")
        )
        self._ahead = ", ".join(f"</static/js/{name}>; rel=modulepreload" for name in ahead())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self._app(scope, receive, send)
        if scope["path"] in self._files:
            return await _answer(scope["path"])(scope, receive, send)
        return await self._app(scope, receive, self._naming(send))

    def _naming(self, send: Send) -> Send:
        async def named(message: Message) -> None:
            if message["type"] == "http.response.start" and self._ahead:
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.append("Link", self._ahead)
            await send(message)

        return named


def ahead() -> list[str]:
    """What `PARTS` import beyond what every page of Streamlit's asks for by itself."""
    return sorted(_closure(PARTS) - _closure(("index",)))


def _closure(parts: Iterable[str]) -> set[str]:
    """The files of these parts, with everything that they import."""
    waiting = [file.name for part in parts for file in SCRIPTS.glob(f"{part}.*.js")]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found and (SCRIPTS / name).is_file():
            found.add(name)
            waiting += IMPORT.findall((SCRIPTS / name).read_text())
    return found


@cache
def _answer(path: str) -> Response:
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    kept = {"Cache-Control": KEPT, "X-Content-Type-Options": "nosniff"}
    return Response((FOLDER / path[1:]).read_bytes(), media_type=kind, headers=kept)
