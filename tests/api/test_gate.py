"""Who may use the API: this machine, or who presents the token. Nobody else, on any route."""

import pytest
from starlette.requests import HTTPConnection

from app.api.gate import admit
from app.api.openapi import OPERATIONS
from app.api.operation import PREFIX
from app.api.problems import Refused
from app.client import ApiProblem, Client
from backend.settings import Settings
from tests.api.asking import JSON, ask
from tests.api.conftest import Served

TOKEN = "a-long-random-text"
PATHS = sorted(
    {o.path.replace("{id:int}", "1").replace("{name}", "x") for o in OPERATIONS}
    | {
        "/metrics",
        "/api",
        f"{PREFIX}/docs",
        f"{PREFIX}/openapi.json",
        f"{PREFIX}/nowhere",
        "/api/x",
    }
)


@pytest.fixture
def guarded(served: Served, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("STAGEFLOW_API_TOKEN", TOKEN)
    return served.url


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_every_route_is_closed(guarded: str, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
        answer = ask(guarded, path, headers=headers)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert TOKEN.encode() not in answer.body
    assert ask(guarded, path, "POST", b"{}", JSON).status in (401, 405)


def test_with_the_token_it_is_open_even_from_elsewhere(guarded: str) -> None:
    assert Client(guarded, TOKEN).runs().total >= 6
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "stageflow.example", "Forwarded": "x"}
    assert ask(guarded, f"{PREFIX}/runs", headers=headers).status == 200
    with pytest.raises(ApiProblem, match="the token is wrong"):
        Client(guarded, "guessed").runs()


@pytest.mark.parametrize("path", PATHS)
def test_on_a_public_address_without_a_token_every_route_is_closed(
    served: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_HOST", "0.0.0.0")
    answer = ask(served.url, path)
    assert answer.status == 403
    assert "STAGEFLOW_API_TOKEN" in answer.json["advice"]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"Host": "evil.example:8501"}, "does not answer to the name"),
        ({"Host": ""}, "does not answer to the name"),
        ({"Origin": "https://evil.example"}, "a page of"),
        ({"Origin": "null"}, "a page of"),
        ({"X-Forwarded-For": "10.0.0.7"}, "only this machine"),
    ],
)
def test_without_a_token_pages_of_others_and_proxies_stay_out(
    served: Served, headers: dict[str, str], reason: str
) -> None:
    for method in ("GET", "POST"):
        answer = ask(served.url, f"{PREFIX}/runs", method, headers=headers)
        assert answer.status == 403
        assert reason in answer.json["error"]


def test_without_a_token_other_machines_stay_out() -> None:
    scope = {"type": "http", "headers": [(b"host", b"localhost")], "client": ("10.0.0.7", 5)}
    with pytest.raises(Refused, match="only this machine"):
        admit(HTTPConnection(scope), Settings(host="127.0.0.1", api_token=""))


def test_secrets_are_not_in_the_settings_text() -> None:
    settings = Settings(api_token=TOKEN, notify="mailto://user:secret@example.org")
    assert TOKEN not in repr(settings)
    assert "secret" not in repr(settings)
