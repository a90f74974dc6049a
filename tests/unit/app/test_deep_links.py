"""Addresses below a page lead to a page that says that there is none."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app.server.deep_links import DeepLinks


async def below(request: object) -> PlainTextResponse:
    return PlainTextResponse("passed on")


SITE = Starlette(
    routes=[Route("/{rest:path}", below)], middleware=[Middleware(DeepLinks, pages=["run", "plan"])]
)
BROWSER = {"Accept": "text/html,application/xhtml+xml"}


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/run/1", "/run-1"),
        ("/run/", "/run"),
        ("/plan/?plan=3", "/plan?plan=3"),
        ("/run//evil.org/x", "/run--evil-org-x"),
        ("/run/" + "1" * 99, "/run-" + "1" * 56),
    ],
)
def test_a_person_is_led_to_a_page_that_says_so(path: str, to: str) -> None:
    answer = TestClient(SITE).get(path, headers=BROWSER, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, to)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/run", BROWSER),
        ("/run/_stcore/health", BROWSER),
        ("/run/1", {"Accept": "*/*"}),
        ("/static/js/index.js", BROWSER),
        ("/api/v1/runs/1", BROWSER),
    ],
)
def test_everything_else_is_passed_on(path: str, headers: dict[str, str]) -> None:
    assert TestClient(SITE).get(path, headers=headers, follow_redirects=False).text == "passed on"
