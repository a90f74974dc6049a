"""Another site's page, in the browser of somebody who is signed in, changes nothing here."""

import os
from pathlib import Path

import pytest

from app.api.openapi import OPERATIONS
from app.api.operation import PREFIX, Operation
from app.gate.rules import SIGN_IN, WELCOME
from backend.bootstrap import Backend
from backend.people.person import Scope
from backend.people.rights import Role
from tests.api.asking import ask, method_of
from tests.api.conftest import Served

PASSWORD = "seven quiet stages"
CHANGING = [each for each in OPERATIONS if method_of(each) != "GET"]
FORMS = (
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "application/json",
)
FOREIGN = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1.evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
)


@pytest.fixture
def cookie(served: Served, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of an administrator."""
    monkeypatch.setenv("STAGEFLOW_SIGN_IN", "accounts")
    return f"stageflow={joined(served.backend, 'Root', Role.ADMIN)}"


def joined(backend: Backend, name: str, role: Role) -> str:
    """The secret of a session of theirs."""
    if name not in {person.name for person in backend.team.list()}:
        _, link = backend.team.add(name, role)
        return backend.accounts.accept(link, "", PASSWORD)
    return backend.accounts.sign_in(name, PASSWORD)


@pytest.mark.parametrize("operation", CHANGING, ids=lambda each: each.name)
def test_no_operation_is_done_for_another_site(
    served: Served, cookie: str, operation: Operation
) -> None:
    path = operation.path.replace("{id:int}", "2")
    before = served.backend.runs.list().runs
    for site in FOREIGN:
        for kind in FORMS:
            headers = {"Cookie": cookie, "Content-Type": kind, **site}
            for method in {method_of(operation), "POST"}:
                assert ask(served.url, path, method, b"{}", headers).status == 403
    assert served.backend.runs.list().runs == before


@pytest.mark.parametrize("path", [SIGN_IN, WELCOME, "/metrics", "/_stcore/upload_file/x/y"])
def test_no_other_route_is_used_by_another_site(served: Served, cookie: str, path: str) -> None:
    for site in FOREIGN:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            answer = ask(served.url, path, method, b"x=y", {"Cookie": cookie, **site})
            assert answer.status == 403


def test_a_cookie_decides_beside_a_token_too(served: Served, cookie: str) -> None:
    for site in FOREIGN:
        headers = {"Cookie": cookie, "Authorization": "Bearer none", **site}
        assert ask(served.url, f"{PREFIX}/definitions", "POST", b"{}", headers).status == 403


def test_a_form_of_another_kind_is_no_request_of_the_api(served: Served, cookie: str) -> None:
    """What a form can send without asking first."""
    for kind in FORMS[:3]:
        headers = {"Cookie": cookie, "Content-Type": kind}
        answer = ask(served.url, f"{PREFIX}/definitions", "POST", b'{"zoo": "mlp"}', headers)
        assert answer.status == 415


def test_a_link_from_another_site_is_followed(served: Served, cookie: str) -> None:
    headers = {"Cookie": cookie, "Sec-Fetch-Site": "cross-site"}
    assert ask(served.url, f"{PREFIX}/runs", headers=headers).status == 200


def test_no_secret_is_in_a_log_or_in_clear_in_the_database(
    served: Served,
    cookie: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Passwords, sessions, tokens and invitations: of requests that go well, that are refused,
    and that end in a fault of ours."""
    caplog.set_level("DEBUG")
    backend = served.backend
    _, link = backend.team.add("Newcomer", Role.EDITOR)
    me = next(person for person in backend.team.list() if person.name == "Root")
    token = backend.acting(me.actor()).tokens.add("ci", Scope.WRITE)[1]
    secrets = [PASSWORD, "wr0ng-pass-phrase", link, token, cookie.partition("=")[2]]
    form = f"name=Root&password={PASSWORD}&again={PASSWORD}".encode()
    ask(served.url, SIGN_IN, "POST", form)
    ask(served.url, SIGN_IN, "POST", b"name=Root&password=wr0ng-pass-phrase")
    ask(served.url, f"{WELCOME}?link={link}")
    ask(served.url, f"{PREFIX}/runs?token={token}", headers={"Authorization": f"Bearer {token}"})
    ask(served.url, f"{PREFIX}/runs/1", headers={"Cookie": cookie})
    monkeypatch.setattr("backend.services.runs.runs.RunService.get", broken)
    headers = {"Authorization": f"Bearer {token}", "Cookie": cookie}
    fault = ask(served.url, f"{PREFIX}/runs/1", headers=headers)
    assert fault.status == 500
    said = caplog.text + "".join(capfd.readouterr())
    assert fault.json["advice"].split()[2].strip(":") in said  # the fault itself is there
    audit = "".join(f"{entry.target}{entry.action}" for entry in backend.audit.list(limit=100))
    home = Path(os.environ["STAGEFLOW_HOME"])
    stored = b"".join(path.read_bytes() for path in home.glob("stageflow.db*"))
    for secret in secrets:
        assert secret not in said
        assert secret not in audit
        assert secret.encode() not in stored


def broken(*_: object) -> None:
    raise RuntimeError("broken for this test")
