"""A notification leads nobody inside: by no spelling, name, redirect or other protocol."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from backend.codec import from_json, to_json
from backend.notifications.delivery import Delivery, DeliveryResults

WAYS = {
    "loopback": "json://127.0.0.1:{port}/x",
    "another loopback": "json://127.1.2.3:{port}/x",
    "a name that leads there": "json://localhost:{port}/x",
    "a short spelling": "json://127.1:{port}/x",
    "one number": "json://2130706433:{port}/x",
    "hexadecimal": "json://0x7f000001:{port}/x",
    "every address": "json://0.0.0.0:{port}/x",
    "IPv6": "json://[::1]:{port}/x",
    "IPv4 in IPv6": "json://[::ffff:127.0.0.1]:{port}/x",
    "a cloud's metadata": "json://169.254.169.254/latest/meta-data",
    "a private network": "form://10.0.0.1/x",
    "a redirect": "json://127.0.0.9:{redirect}/x",
    "mail": "mailto://me:hunter2@example.org:{port}?smtp=localhost&mode=insecure",
    "a datagram": "rsyslog://127.0.0.1:{port}",
    "XML": "xml://127.0.0.1:{port}/x",
}
NOT_TAKEN = {"a short spelling", "IPv4 in IPv6"}
"""Apprise itself reads no host in these."""
ALLOWED = "127.0.0.9"


class Inside(HTTPServer):
    """Counts whoever comes; sends those who come to `leads_to` on."""

    def __init__(self, host: str, leads_to: str = "") -> None:
        super().__init__((host, 0), _Handler)
        self.leads_to = leads_to
        self.came: list[str] = []

    def get_request(self) -> tuple[Any, Any]:
        found = super().get_request()
        self.came.append(str(found[1]))
        return found


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Inside)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(302 if self.server.leads_to else 200)
        if self.server.leads_to:
            self.send_header("Location", self.server.leads_to)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def told() -> Iterator[tuple[dict[str, Any], Inside, Inside]]:
    """What became of every way, all by one process; the server inside, and the allowed one."""
    inside = Inside("127.0.0.1")
    door = Inside(ALLOWED, f"http://127.0.0.1:{inside.server_port}/secret")
    for server in (inside, door):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    ports = {"port": inside.server_port, "redirect": door.server_port}
    urls = tuple(url.format(**ports) for url in WAYS.values())
    done = subprocess.run(
        [sys.executable, "-m", "backend.notifications.delivery"],
        input=to_json(Delivery, Delivery(urls, "title", "body", (ALLOWED,))),
        capture_output=True,
        timeout=240,
        check=True,
    )
    outcomes = from_json(DeliveryResults, done.stdout.splitlines()[-1])
    assert len(outcomes) == len(WAYS)
    assert b"hunter2" not in done.stdout + done.stderr
    yield dict(zip(WAYS, outcomes, strict=True)), inside, door
    for server in (inside, door):
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("way", WAYS)
def test_nobody_inside_is_reached(way: str, told: tuple[dict[str, Any], Inside, Inside]) -> None:
    outcomes, inside, _ = told
    assert not outcomes[way].delivered
    assert bool(outcomes[way].refused) is (way not in NOT_TAKEN)
    assert inside.came == []


def test_the_redirect_was_followed_to_the_gate(
    told: tuple[dict[str, Any], Inside, Inside],
) -> None:
    outcomes, _, door = told
    assert len(door.came) == 1
    assert outcomes["a redirect"].refused == ("127.0.0.1",)
