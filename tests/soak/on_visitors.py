"""Faults that visitors of the dashboard make: many who sign in, a large upload, slow ones."""

import json
import socket
import threading
import time
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import psutil

from app.gate.rules import BELOW, EXACT, SIGN_IN
from backend.people.rights import Role
from backend.settings import SignIn
from tests.ports import free_port
from tests.soak.fault import Curve, Figures
from tests.soak.site import Site

MIB = 2**20
PASSWORD = "seven quiet stages"
NUM_SIGN_INS, NUM_SLOW = 60, 20


def sign_ins(there: Site, undisturbed: Curve) -> Figures:
    """So many people at once: megabytes of the web process beyond those at rest, and how long
    /healthz waits meanwhile."""
    names = {person.name for person in there.backend.team.list()}
    if "Ada" not in names:
        _, link = there.backend.team.add("Ada", Role.ADMIN)
        there.backend.accounts.accept(link, "", PASSWORD)
    told = urllib.parse.urlencode({"name": "Ada", "password": PASSWORD}).encode()
    codes: list[int] = []
    with _web(there, sign_in=SignIn.ACCOUNTS, rate=0) as (web, port):

        def sign_in() -> None:
            with suppress(OSError):
                codes.append(_status(port, _request("POST", SIGN_IN, told)))

        figures = _beside(web, port, [sign_in] * NUM_SIGN_INS)
    assert len(codes) == NUM_SIGN_INS
    assert set(codes) <= {303, 503}, codes
    return {**figures, "signed in": float(codes.count(303))}


def large_upload(there: Site, undisturbed: Curve) -> Figures:
    """A definition of nearly a megabyte, one that is slow to parse, and one of 64 MiB."""
    sources = (b"x = [1, 2, 3]\n" * 70_000, b"x = " + b"(" * 100_000, bytes(48 * MIB))
    codes: list[int] = []
    with _web(there) as (web, port):

        def upload(source: bytes) -> None:
            told = {"filename": "large.py", "content": b64encode(source).decode()}
            request = _request("POST", "/api/v1/definitions", json.dumps(told).encode())
            with suppress(OSError):
                codes.append(_status(port, request, patience=120))

        figures = _beside(web, port, [partial(upload, source) for source in sources])
    return {**figures, **{f"answer {place}": float(code) for place, code in enumerate(codes)}}


def slow_clients(there: Site, undisturbed: Curve) -> Figures:
    """So many on every route that send a byte a second, half of their headers and half of a body:
    all are let go within a minute, and others are answered meanwhile."""
    paths = [*EXACT, *BELOW, "/", "/run", "/_stcore/stream"]
    with _web(there) as (web, port):
        held = [_slow(port, path, place % 2 == 0) for path in paths for place in range(NUM_SLOW)]

        def drip() -> None:
            started = time.monotonic()
            while held and time.monotonic() - started < 90:
                for client in list(held):
                    if not _still(client):
                        held.remove(client)
                time.sleep(1.0)

        started = time.monotonic()
        figures = _beside(web, port, [drip])
        assert not held, f"{len(held)} are held yet"
        return {**figures, "let go": time.monotonic() - started}


def _slow(port: int, path: str, in_body: bool) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=5)
    asked, begun = ("POST", "Content-Length: 9999\r\n\r\n") if in_body else ("GET", "X-Slow: ")
    client.sendall(f"{asked} {path} HTTP/1.1\r\nHost: localhost\r\n{begun}".encode())
    client.setblocking(False)
    return client


def _still(client: socket.socket) -> bool:
    """Is it connected after another byte?"""
    try:
        client.send(b"x")
        while client.recv(1 << 16):
            pass
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def _beside(web: psutil.Process, port: int, works: list[Callable[[], None]]) -> Figures:
    """What these do at once costs: megabytes beyond those at rest, the longest wait of /healthz."""
    rest, most, slowest = web.memory_info().rss, 0, 0.0
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        started = time.monotonic()
        assert _status(port, _request("GET", "/healthz")) == 200
        slowest = max(slowest, time.monotonic() - started)
        most = max(most, web.memory_info().rss)
        time.sleep(0.02)
    return {"MB more": max(0, most - rest) / 1e6, "healthz": slowest}


def _is_well(port: int) -> bool:
    with suppress(OSError):
        return _status(port, _request("GET", "/healthz")) == 200
    return False


def _request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    if body:
        head += f"Content-Length: {len(body)}\r\n"
        kind = "json" if body.startswith(b"{") else "x-www-form-urlencoded"
        head += f"Content-Type: application/{kind}\r\n"
    return f"{head}\r\n".encode() + body


def _status(port: int, request: bytes, patience: float = 60.0) -> int:
    """The answer's. Raises `OSError`."""
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as client:
        client.sendall(request)
        return int(client.recv(4096).split(b" ", 2)[1])


@contextmanager
def _web(there: Site, **changes: object) -> Iterator[tuple[psutil.Process, int]]:
    """A dashboard of the site's home, warm."""
    port = free_port()
    settings = there.settings.model_copy(update={"node": "web", "port": port, **changes})
    web = there.process("app.asgi", settings)
    try:
        there.wait(lambda: _is_well(port))
        yield psutil.Process(web.pid), port
    finally:
        web.terminate()
        web.wait()
