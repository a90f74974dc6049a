"""The bundle from memory: the same bytes as from Streamlit, and nothing that is not in it."""

import asyncio
from typing import Any

import pytest
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from app.server.bundle import FOLDER, PARTS, SCRIPTS, Bundle, ahead

FONT = next((FOLDER / "static").glob("media/*.woff2"))


async def below(scope: Scope, receive: Receive, send: Send) -> None:
    await HTMLResponse("<p>a page</p>")(scope, receive, send)


def ask(path: str, method: str = "GET") -> tuple[dict[str, str], bytes]:
    """Headers and body of the answer."""
    told: list[Any] = []

    async def send(message: Any) -> None:
        told.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    scope = {"type": "http", "method": method, "path": path, "headers": []}
    asyncio.run(Bundle(below)(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in told[0]["headers"]}
    return headers, b"".join(message.get("body", b"") for message in told[1:])


@pytest.mark.parametrize("file", [next(SCRIPTS.glob("index.*.js")), FONT], ids=["script", "font"])
def test_a_file_is_answered_as_it_is_and_kept(file: Any) -> None:
    headers, body = ask("/" + file.relative_to(FOLDER).as_posix())
    assert body == file.read_bytes()
    assert "immutable" in headers["cache-control"]
    assert headers["content-type"].startswith(("text/javascript", "font/woff2"))


@pytest.mark.parametrize("path", ["/static/js/../../index.html", "/static/js/none.js", "/runs"])
def test_what_is_no_file_of_the_bundle_is_passed_on(path: str) -> None:
    headers, body = ask(path)
    assert body == b"<p>a page</p>"
    assert "cache-control" not in headers


def test_a_page_names_what_it_will_draw_with() -> None:
    headers, _ = ask("/runs")
    named = headers["link"]
    for part in PARTS:
        assert f"/static/js/{part}." in named, f"Streamlit has no part {part} any more"
    assert "index." not in named
    assert "link" not in ask("/runs", "POST")[0]


def test_what_is_named_is_there_and_beyond_what_every_page_loads() -> None:
    assert ahead()
    assert all((SCRIPTS / name).is_file() for name in ahead())
