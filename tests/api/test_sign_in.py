"""Signing in by form, cookie and token; what a browser of somebody else may not do."""

import re
from urllib.parse import quote, urlencode

import pytest

from app.api.openapi import OPERATIONS
from app.api.operation import PREFIX, Operation
from app.client import ApiProblem, Client
from app.gate.routes import inside_only
from app.gate.rules import SIGN_IN, WELCOME
from backend.bootstrap import Backend
from backend.cluster.presets import local
from backend.people.audit import AuditOutcome
from backend.people.person import Scope
from backend.people.rights import Role
from backend.runs.history.views import ListView
from backend.runs.request.spec import TrainSpec
from backend.runs.sweeps.sweep import SweepAxis, SweepSpec
from tests.api.asking import JSON, Answer, ask, method_of
from tests.api.conftest import Served

PASSWORD = "seven quiet stages"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
CHANGING = [each for each in OPERATIONS if method_of(each) != "GET"]


@pytest.fixture
def team(served: Served, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """Accounts are on, and Ada, Vera and Ed have joined once."""
    monkeypatch.setenv("STAGEFLOW_SIGN_IN", "accounts")
    backend = served.backend
    if not backend.team.list():
        for name, role in (("Ada", Role.ADMIN), ("Ed", Role.EDITOR), ("Vera", Role.VIEWER)):
            _, link = backend.team.add(name, role)
            backend.accounts.accept(link, "", PASSWORD)
    if not backend.clusters.list():
        backend.clusters.save("our room", local(2))
        backend.comments.add(served.seeded.failed, "a word")
        backend.views.save("slow ones", ListView(), shared=True)
        plan = backend.plans.get(served.seeded.plan)
        base = TrainSpec(served.seeded.definition, plan.plan, plan.id)
        backend.sweeps.start(SweepSpec(base, (SweepAxis("seed", (1,)),)))
    return backend


def post(url: str, path: str, headers: dict[str, str] | None = None, **fields: str) -> Answer:
    return ask(url, path, "POST", urlencode(fields).encode(), FORM | (headers or {}))


def cookie(answer: Answer) -> dict[str, str]:
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


def token(backend: Backend, name: str, scope: Scope) -> str:
    people = {person.name: person for person in backend.team.list()}
    return backend.acting(people[name].actor()).tokens.add("test", scope)[1]


def test_a_person_signs_in_and_lands_where_the_link_led(served: Served, team: Backend) -> None:
    page = ask(served.url, f"{PREFIX}/runs", headers={"Accept": "text/html"})
    assert page.status == 401  # a program's place: no form
    target = "/run?id=3&x=ä"
    path = f"{SIGN_IN}?next={quote(target)}"
    form = ask(served.url, path)
    assert form.status == 200
    assert re.search(r'<form method="post" action="/sign-in\?next=%2Frun', form.body.decode())
    answer = post(served.url, path, name="ed", password=PASSWORD)
    assert answer.status == 303
    assert answer.headers["location"] == quote(target, safe="/?=&")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= set(answer.headers["set-cookie"].split("; "))
    assert "Secure" not in answer.headers["set-cookie"]
    assert ask(served.url, f"{PREFIX}/runs", headers=cookie(answer)).status == 200


def test_over_tls_the_cookie_is_the_hosts_own(
    served: Served, team: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_PUBLIC_URL", "https://stageflow.example")
    answer = post(served.url, SIGN_IN, {"Host": "stageflow.example"}, name="Ed", password=PASSWORD)
    assert answer.headers["set-cookie"].startswith("__Host-stageflow=")
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("fields", [{"name": "Ed", "password": "wrong"}, {"name": "x"}, {}])
def test_a_failure_shows_the_form_again_and_no_more(
    served: Served, team: Backend, fields: dict[str, str]
) -> None:
    answer = post(served.url, SIGN_IN, **fields)
    assert answer.status == 401
    assert b"Name or password is wrong" in answer.body
    assert "set-cookie" not in answer.headers
    team.accounts._people.unlock("Ed")


def test_what_people_type_is_escaped(served: Served, team: Backend) -> None:
    answer = post(served.url, SIGN_IN, name='"><script>alert(1)</script>', password="x")
    assert b"<script>" not in answer.body
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "", "x\n"],
)
def test_nobody_is_led_to_another_site(target: str) -> None:
    assert inside_only(target) == "/"


@pytest.mark.parametrize("target", ["/", "/run?id=3", "/plan?cluster=a%2Fb&cut=1,2"])
def test_deep_links_survive(target: str) -> None:
    assert inside_only(target) == target


def test_an_invitation_is_taken_in_the_browser_once(served: Served, team: Backend) -> None:
    _, link = team.team.add("New", Role.VIEWER)
    path = f"{WELCOME}?link={link}"
    assert b"Welcome, New" in ask(served.url, path).body
    wrong = post(served.url, path, password=PASSWORD, again="other")
    assert (wrong.status, b"differ" in wrong.body) == (422, True)
    answer = post(served.url, path, password=PASSWORD, again=PASSWORD)
    assert answer.status == 303
    assert ask(served.url, f"{PREFIX}/runs", headers=cookie(answer)).status == 200
    assert ask(served.url, path).status == 410
    assert ask(served.url, f"{WELCOME}?link=guessed").status == 410


def test_another_sites_page_cannot_use_the_cookie(served: Served, team: Backend) -> None:
    mine = cookie(post(served.url, SIGN_IN, name="Ed", password=PASSWORD))
    for origin in ("https://evil.example", "null", served.url.replace("127.0.0.1", "localhost")):
        headers = mine | {"Origin": origin, "Content-Type": "application/json"}
        assert ask(served.url, f"{PREFIX}/runs/7/cancel", "POST", b"", headers).status == 403
        assert post(served.url, SIGN_IN, {"Origin": origin}, name="Ed").status == 403
    headers = mine | {"Origin": served.url}
    assert ask(served.url, f"{PREFIX}/runs/2/cancel", "POST", b"", headers).status == 200


def test_without_a_known_token_nothing_is_answered(served: Served, team: Backend) -> None:
    for headers in ({}, {"Authorization": "Bearer guessed"}, {"Cookie": "stageflow=guessed"}):
        for path in ("/metrics", "/api", f"{PREFIX}/docs", f"{PREFIX}/nowhere", f"{PREFIX}/runs"):
            answer = ask(served.url, path, headers=headers)
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == "Bearer"


def test_the_token_for_all_is_none_where_people_sign_in(
    served: Served, team: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_API_TOKEN", "a-long-random-text")
    with pytest.raises(ApiProblem, match="sign in first"):
        Client(served.url, "a-long-random-text").runs()


def test_a_tokens_scope_and_its_owners_role_both_bind(served: Served, team: Backend) -> None:
    reading = Client(served.url, token(team, "Ed", Scope.READ))
    assert reading.runs().total
    with pytest.raises(ApiProblem, match="may not cancel") as caught:
        reading.cancel(2)
    assert caught.value.status == 403
    writing = Client(served.url, token(team, "Ed", Scope.WRITE))
    assert writing.add_zoo("mlp").name == "mlp"
    assert team.audit.list(limit=1)[0].actor == "Ed"


BODIES = {
    "add_definition": b'{"zoo": "mlp"}',
    "submit_run": b'{"spec": {"kind": "profile", "definition_id": 1}}',
    "label_run": b'{"starred": true}',
    "resume_run": b"{}",
    "label_profile": b'{"note": "ours"}',
    "label_plan": b'{"name": "Monday"}',
    "label_cluster": b'{"name": "the new room"}',
    "add_project": b'{"name": "Vision"}',
    "change_project": b'{"name": "Vision"}',
}
"""Of those operations whose body is short; that of the others is as good as none."""


@pytest.mark.parametrize("operation", CHANGING, ids=lambda operation: operation.name)
def test_who_only_looks_changes_nothing_by_any_operation(
    served: Served, team: Backend, operation: Operation
) -> None:
    headers = {"Authorization": f"Bearer {token(team, 'Vera', Scope.READ)}"}
    if operation.body is not None:
        headers |= JSON
    number = "2" if operation.tags == ["runs"] else "1"
    path = operation.path.replace("{id:int}", number)
    body = BODIES.get(operation.name, b"{}")
    answer = ask(served.url, path, method_of(operation), body, headers)
    expected = 403 if operation.body is None or operation.name in BODIES else 422
    assert answer.status == expected, answer.body
    entry = team.audit.list(limit=1)[0]
    assert (entry.actor, entry.outcome) == ("Vera", AuditOutcome.DENIED) or expected == 422


def test_a_role_that_is_taken_away_counts_at_once(served: Served, team: Backend) -> None:
    _, link = team.team.add("Temp", Role.EDITOR)
    team.accounts.accept(link, "", PASSWORD)
    client = Client(served.url, token(team, "Temp", Scope.WRITE))
    client.cancel(2)
    team.team.change("Temp", Role.VIEWER)
    with pytest.raises(ApiProblem, match="may not"):
        client.cancel(2)
    team.team.change("Temp", disabled=True)
    with pytest.raises(ApiProblem, match="sign in first"):
        client.runs()
