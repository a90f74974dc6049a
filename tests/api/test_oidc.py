"""Signing in with a real OpenID Connect provider, which runs beside the tests."""

import re
import warnings
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from app.api.operation import PREFIX
from app.gate import oidc
from app.gate.rules import BACK, PROVIDER
from backend.bootstrap import Backend
from backend.people.rights import Role
from tests.api.conftest import Served

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses what authlib will drop
    import oidc_provider_mock

TARGET = "/run?id=3"
SECONDS = 30
# The provider's own library says so of the provider.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:authlib.*")


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    users = [
        oidc_provider_mock.User(
            sub="a1", claims={"email": "ada@team.example", "email_verified": True}
        ),
        oidc_provider_mock.User(sub="b2", claims={"email": "bob@team.example"}),
    ]
    with oidc_provider_mock.run_server_in_thread(user_claims=users) as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def team(served: Served, issuer: str, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """Passwords and the provider are both offered, at the address that the tests use."""
    for name, value in {
        "SIGN_IN": "accounts",
        "PORT": str(urlsplit(served.url).port),
        "OIDC_ISSUER": issuer,
        "OIDC_CLIENT_ID": "stageflow",
        "OIDC_CLIENT_SECRET": "a secret of the two",
    }.items():
        monkeypatch.setenv(f"STAGEFLOW_{name}", value)
    return served.backend


def leave(url: str, browser: requests.Session) -> str:
    """Follow the link on the sign-in page as far as the provider's own page; its address."""
    page = browser.get(f"{url}/sign-in", params={"next": TARGET}, timeout=SECONDS)
    link = re.search(rf'href="({PROVIDER}[^"]*)"', page.text)
    assert link
    answer = browser.get(url + link[1], allow_redirects=False, timeout=SECONDS)
    assert answer.status_code == 303
    return answer.headers["location"]


def sign_in(url: str, subject: str, browser: requests.Session) -> requests.Response:
    """All the way: the answer to the way back."""
    answer = browser.post(
        leave(url, browser), data={"sub": subject}, allow_redirects=False, timeout=SECONDS
    )
    back = answer.headers["location"]
    assert back.startswith(url + BACK)
    return browser.get(back, allow_redirects=False, timeout=SECONDS)


def test_an_invited_person_comes_in_by_a_verified_address(served: Served, team: Backend) -> None:
    team.team.add("ada@team.example", Role.ADMIN)
    browser = requests.Session()
    answer = sign_in(served.url, "a1", browser)
    assert (answer.status_code, answer.headers["location"]) == (303, TARGET)
    assert browser.get(f"{served.url}{PREFIX}/runs", timeout=SECONDS).status_code == 200
    person = next(p for p in team.team.list() if p.name == "ada@team.example")
    assert person.joined
    team.team.add("second", Role.ADMIN)
    again = sign_in(served.url, "a1", requests.Session())  # by now tied to the subject
    assert again.status_code == 303


def test_whom_nobody_has_invited_stays_out_or_joins_as_it_is_set(
    served: Served, team: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = sign_in(served.url, "c3", requests.Session())
    assert refused.status_code == 401
    assert "There is no account or invitation for you" in refused.text
    monkeypatch.setenv("STAGEFLOW_OIDC_NEWCOMERS", "viewer")
    assert sign_in(served.url, "c3", requests.Session()).status_code == 303
    (new,) = [p for p in team.team.list() if p.role is Role.VIEWER and "c3" in p.name]
    team.team.change(new.name, disabled=True)
    assert "is disabled" in sign_in(served.url, "c3", requests.Session()).text


def test_an_address_that_is_not_verified_ties_nobody(served: Served, team: Backend) -> None:
    team.team.add("bob@team.example", Role.EDITOR)
    assert sign_in(served.url, "b2", requests.Session()).status_code == 401


def test_the_way_back_belongs_to_the_browser_that_left(served: Served, team: Backend) -> None:
    mine, theirs = requests.Session(), requests.Session()
    leave(served.url, theirs)
    answer = mine.post(
        leave(served.url, mine), data={"sub": "a1"}, allow_redirects=False, timeout=SECONDS
    )
    back = answer.headers["location"]
    for browser in (theirs, requests.Session()):
        stolen = browser.get(back, allow_redirects=False, timeout=SECONDS)
        assert stolen.status_code == 401
        assert "in this browser" in stolen.text
        assert "stageflow" not in browser.cookies
    denied = f"{served.url}{BACK}?error=access_denied&state="
    state = parse_qs(urlsplit(back).query)["state"][0]
    assert "access_denied" in mine.get(denied + state, timeout=SECONDS).text


def test_an_identity_for_another_flow_or_client_does_not_hold(
    served: Served, team: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = requests.Session()
    answer = browser.post(
        leave(served.url, browser), data={"sub": "a1"}, allow_redirects=False, timeout=SECONDS
    )
    flow = oidc.flow_of(browser.cookies["stageflow-flow"])
    forged = oidc.PendingSignIn(flow.state, "another nonce", flow.verifier, flow.target)
    browser.cookies.set("stageflow-flow", None)
    browser.cookies.set("stageflow-flow", forged.text())
    refused = browser.get(answer.headers["location"], allow_redirects=False, timeout=SECONDS)
    assert refused.status_code == 401
    assert "is not valid" in refused.text


def test_a_provider_that_is_away_leaves_the_password(
    served: Served, team: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_OIDC_ISSUER", "http://localhost:9")
    answer = requests.get(f"{served.url}{PROVIDER}", timeout=SECONDS)
    assert answer.status_code == 503
    assert "sign in with a password" in answer.text
    assert 'name="password"' in answer.text


def test_where_no_provider_is_set_none_is_offered(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_SIGN_IN", "accounts")
    assert PROVIDER not in requests.get(f"{served.url}/sign-in", timeout=SECONDS).text
    assert requests.get(f"{served.url}{PROVIDER}", timeout=SECONDS).url.endswith("/sign-in")
