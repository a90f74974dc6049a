"""The server as it is really started: one port, from any directory."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import asgi
from app.client import Client
from backend.bootstrap import Backend
from tests.app.test_boundary import set_revision
from tests.ports import free_port


@pytest.fixture
def url(backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A dashboard on a free port, started in a directory that is not the project's."""
    port = free_port()
    monkeypatch.setenv("STAGEFLOW_PORT", str(port))
    server = subprocess.Popen([sys.executable, "-m", "app.asgi"], cwd=tmp_path)
    try:
        _await_port(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=120)


def _await_port(port: int, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"the dashboard did not start: exit code {server.poll()}")


def ask(address: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(address, timeout=120) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as fault:
        return fault.code, fault.read()


def test_health_and_pages_share_a_port(url: str) -> None:
    status, body = ask(f"{url}/healthz")
    told = json.loads(body)
    assert status == 200
    assert told["status"] == "ok"
    assert told["schema"] == told["schema_needed"]
    assert told["version"]
    status, page = ask(f"{url}/runs")
    assert status == 200
    assert b"<html" in page
    set_revision("0000")
    status, body = ask(f"{url}/healthz")
    assert status == 503
    assert json.loads(body)["status"] == "outdated"


def test_the_api_and_the_measures_are_on_the_same_port(url: str) -> None:
    assert Client(url).runs().total == 0
    status, body = ask(f"{url}/metrics")
    assert status == 200
    assert b"stageflow_database_up 1.0" in body
    assert b'stageflow_http_seconds_count{kind="api"}' in body
    status, body = ask(f"{url}/api/v1/nowhere")
    assert status == 404
    assert json.loads(body)["kind"] == "NotFound"
    status, body = ask(f"{url}/api")
    assert b"Stageflow REST API" in body


def test_the_server_is_configured_the_same_wherever_it_starts() -> None:
    options = asgi.configuration("127.0.0.1", 9000)
    assert options["server.address"] == "127.0.0.1"
    assert options["browser.gatherUsageStats"] is False
    assert options["runner.magicEnabled"] is False
    assert options["server.fileWatcherType"] == "none"
    assert options["theme.light.primaryColor"] == "#0072B2"
    assert "localhost" in options["server.allowedHosts"]
    assert "server.allowedHosts" not in asgi.configuration("0.0.0.0", 9000)
