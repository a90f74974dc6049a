"""How often somebody may ask: told by 429 and how long to wait, callers apart."""

import socket
import time
from urllib.parse import urlsplit

import pytest

from app.client import ApiProblem, Client
from app.gate.rules import BELOW, EXACT, SIGN_IN
from app.server import slow_clients
from tests.api.asking import ask
from tests.api.conftest import Served

PATH = "/api/v1/runs?limit=1"


@pytest.fixture
def rate(served: Served, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("STAGEFLOW_RATE", "3")
    return served.url


def test_the_api_is_asked_so_often_and_no_more(rate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGEFLOW_USER", "grace")
    answers = [ask(rate, PATH) for _ in range(6)]
    assert [answer.status for answer in answers[:3]] == [200] * 3
    last = answers[-1]
    assert last.status == 429
    assert 1 <= int(last.headers["retry-after"]) <= 20
    assert last.json["kind"] == "Refused"
    assert "STAGEFLOW_RATE" in last.json["advice"]
    with pytest.raises(ApiProblem, match="more than 3 requests in a minute"):
        Client(rate).runs()
    monkeypatch.setenv("STAGEFLOW_USER", "someone-else")
    assert ask(rate, PATH).status == 200
    assert ask(rate, "/healthz").status == 404  # not served here, and not counted


def test_guesses_are_slowed_down_and_people_who_are_in_are_not(
    rate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_SIGN_IN", "accounts")
    guesses = [
        ask(rate, PATH, headers={"Authorization": f"Bearer sf_{number}"}) for number in range(6)
    ]
    assert {answer.status for answer in guesses} == {401, 429}
    assert guesses[-1].status == 429
    tries = [ask(rate, SIGN_IN, "POST", b"name=x&password=y") for _ in range(2)]
    assert [answer.status for answer in tries] == [429, 429]
    assert all("retry-after" in answer.headers for answer in (*tries, guesses[-1]))
    assert ask(rate, SIGN_IN).status == 200  # the form itself


def test_nobody_says_from_where_they_come(rate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no proxy is named, this machine is none: an address of one's own for each guess."""
    monkeypatch.setenv("STAGEFLOW_SIGN_IN", "accounts")
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        guesses = [
            ask(rate, PATH, headers={name: f"192.0.2.{n}", "Authorization": "Bearer sf_0"})
            for n in range(6)
        ]
        assert guesses[-1].status == 429, name


@pytest.mark.parametrize("path", [*EXACT, *BELOW, "/", "/run"])
def test_who_never_says_what_it_wants_is_let_go(
    served: Served, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that says nothing, one that stops in its headers, one that stops in its second
    request's; who has asked is answered."""
    monkeypatch.setattr(slow_clients, "PATIENCE", 0.2)
    address = urlsplit(served.url)
    whole = f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode()
    for said in (b"", whole[:-2], whole + whole[:-2]):
        with connection(served.url) as client:
            client.sendall(said)
            answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        assert answer.count(b"HTTP/1.1 ") == said.count(b"\r\n\r\n")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", [*EXACT, *BELOW, "/"])
def test_who_sends_a_body_byte_by_byte_is_let_go(
    served: Served, path: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it was answered before, as strangers are, or not yet."""
    monkeypatch.setattr(slow_clients, "PATIENCE", 0.1)
    host = urlsplit(served.url).netloc
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9999\r\n\r\n"
    assert is_let_go(served.url, head.encode(), b"x")


def test_who_sends_nothing_but_ends_of_lines_is_let_go(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_clients, "PATIENCE", 0.1)
    head = f"GET /healthz HTTP/1.1\r\nHost: {urlsplit(served.url).netloc}\r\n\r\n"
    assert is_let_go(served.url, head.encode(), b"\r\n")


def is_let_go(url: str, head: bytes, drip: bytes, patience: float = 30.0) -> bool:
    """Does the connection end, although another `drip` comes again and again?"""
    deadline = time.monotonic() + patience
    with connection(url) as client:
        client.sendall(head)
        client.settimeout(0.02)
        while time.monotonic() < deadline:
            try:
                client.send(drip)
                if client.recv(1 << 16) == b"":
                    return True
            except TimeoutError:
                continue
            except OSError:
                return True
    return False


def connection(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port), timeout=120)
