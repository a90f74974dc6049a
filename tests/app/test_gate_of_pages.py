"""The gate in front of the dashboard as it is really started: every route, and roles on pages."""

import http.client
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.routing import BaseRoute, Mount, Route
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette import starlette_routes
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from app.api.site import api_routes
from app.gate.routes import sign_in_routes
from app.gate.rules import BACK, BELOW, EXACT, PROVIDER, SIGN_IN, WELCOME, AccessRule, rule_for
from app.gate.run_files import artifact_link
from app.session.state import Page
from backend.people.rights import Role
from tests.app import seed
from tests.ports import free_port

PASSWORD = "seven quiet stages"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
OPEN = {"/healthz", "/_stcore/health", SIGN_IN}
STREAMLITS = sorted(
    "/" + re.sub(r"\{[^}]*\}", "x", value)
    for name, value in vars(starlette_routes).items()
    if name.startswith(("_ROUTE_", "BASE_ROUTE_")) and isinstance(value, str)
)
PLACES = sorted(
    {*STREAMLITS, *(f"/{page.path}" for page in Page), "/", "/static/x.js", "/_stcore/metrics"}
    | {"/_stcore/stream", "/_stcore/host-config", "/nowhere", "/favicon.png", "/files/runs/1/x"}
    - OPEN
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A dashboard where people sign in: its host and port, and the cookie of a viewer."""
    home = tmp_path_factory.mktemp("gate")
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("STAGEFLOW_")]:
            patch.delenv(name)
        patch.setenv("STAGEFLOW_HOME", str(home))
        patch.setenv("STAGEFLOW_PORT", str(port))
        patch.setenv("STAGEFLOW_SIGN_IN", "accounts")
        patch.setenv("STAGEFLOW_RATE", "0")  # tests ask faster than people may
        cookie = _viewers_cookie("Vera")
        process = subprocess.Popen([sys.executable, "-m", "app.asgi"], cwd=Path.cwd())
        try:
            _await(port, process)
            yield f"127.0.0.1:{port}", cookie
        finally:
            process.terminate()
            process.wait(timeout=120)


def _viewers_cookie(name: str) -> str:
    backend = seed.fresh()
    _, link = backend.team.add(name, Role.VIEWER)
    secret = backend.accounts.accept(link, "", PASSWORD)
    backend.close()
    return f"stageflow={secret}"


def _await(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"the dashboard did not start: exit code {process.poll()}")


def ask(
    place: str, path: str, headers: dict[str, str] | None = None, method: str = "GET"
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(place, timeout=240)
    connection.request(method, path, headers=headers or {})
    return connection.getresponse()


def paths(routes: list[BaseRoute], before: str = "") -> list[str]:
    found = []
    for route in routes:
        if isinstance(route, Mount):
            found += paths(list(route.routes), before + route.path)
        elif isinstance(route, Route):
            found.append(before + route.path)
    return found


def test_every_route_of_ours_has_a_line_in_the_table() -> None:
    for path in paths([*sign_in_routes(), *api_routes()]):
        assert path in EXACT or path.startswith(tuple(BELOW)), f"no rule for {path}"


def test_what_is_not_in_the_table_is_closed() -> None:
    assert rule_for("/something/new") is AccessRule.PERSON
    known = {path for path, rule in EXACT.items() if rule in (AccessRule.OPEN, AccessRule.HEALTH)}
    assert known == OPEN | {WELCOME, PROVIDER, BACK}


def test_a_visitor_whom_nobody_knows_gets_nothing(server: tuple[str, str]) -> None:
    place, _ = server
    for path in PLACES:
        for method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
            assert ask(place, path, method=method).status == 401, (method, path)
        assert ask(place, path, {"Cookie": "stageflow=guessed"}).status == 401, path


def test_a_person_is_led_to_the_sign_in_and_back(server: tuple[str, str]) -> None:
    place, _ = server
    answer = ask(place, "/run?id=3", {"Accept": "text/html"})
    assert answer.status == 303
    assert answer.headers["location"] == "/sign-in?next=%2Frun%3Fid%3D3"
    for path in OPEN:
        assert ask(place, path).status == 200


def test_a_websocket_is_opened_for_people_from_pages_of_ours_alone(
    server: tuple[str, str],
) -> None:
    place, cookie = server
    mine = UPGRADE | {"Cookie": cookie}
    assert ask(place, "/_stcore/stream", UPGRADE).status == 403
    assert ask(place, "/_stcore/stream", mine | {"Origin": "https://evil.example"}).status == 403
    assert ask(place, "/_stcore/stream", mine | {"Host": "evil.example"}).status == 403
    assert ask(place, "/_stcore/stream", mine | {"Origin": f"http://{place}"}).status == 101


def test_pages_tell_browsers_what_they_may_load(server: tuple[str, str]) -> None:
    place, cookie = server
    answer = ask(place, "/runs", {"Cookie": cookie})
    assert answer.status == 200
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"


def test_a_foreign_name_is_not_answered(server: tuple[str, str]) -> None:
    place, cookie = server
    for host in ("evil.example", "127.0.0.1.evil.example", "[", ""):
        assert ask(place, "/runs", {"Cookie": cookie, "Host": host}).status in (400, 403)
    assert ask(place, "/healthz", {"Host": "10.0.0.7:8501"}).status == 200  # a probe


@contextmanager
def downloads(place: str, cookie: str, page: Page, number: int) -> Iterator[dict[str, str]]:
    """What an open page of this person's offers to take away, by label, and from where."""
    with connect(
        f"ws://{place}/_stcore/stream",
        origin=Origin(f"http://{place}"),
        subprotocols=[Subprotocol("streamlit")],
        additional_headers={"Cookie": cookie},
        max_size=None,
    ) as visit:
        asked = BackMsg()
        asked.rerun_script.page_name = page.path
        asked.rerun_script.query_string = f"id={number}"
        drawn = said(visit, asked, "script_finished")
        (session,) = [
            m.new_session.initialize.session_id for m in drawn if m.HasField("new_session")
        ]
        found: dict[str, str] = {}
        for button in (message.delta.new_element.download_button for message in drawn):
            if button.deferred_file_id:
                asked = BackMsg()
                asked.backend_operation_request.session_id = session
                asked.backend_operation_request.deferred_file.file_id = button.deferred_file_id
                answer = said(visit, asked, "backend_operation_response")[-1]
                found[button.label] = answer.backend_operation_response.deferred_file.url
        yield found


def said(visit: ClientConnection, asked: BackMsg, kind: str) -> list[ForwardMsg]:
    """What the page is told up to the first message of this kind."""
    visit.send(asked.SerializeToString())
    found: list[ForwardMsg] = []
    while not found or found[-1].WhichOneof("type") != kind:
        data = visit.recv(timeout=240)
        assert isinstance(data, bytes)
        found.append(ForwardMsg.FromString(data))
    return found


@pytest.fixture(scope="module")
def seeded(server: tuple[str, str]) -> seed.Seeded:
    backend = seed.fresh()
    found = seed.everything(backend)
    backend.close()
    return found


def test_a_download_is_for_whom_the_page_was_drawn(
    server: tuple[str, str], seeded: seed.Seeded
) -> None:
    place, veras = server
    ottos = _viewers_cookie("Otto")
    model = (Page.MODELS, seeded.definition)
    with downloads(place, veras, *model) as mine:
        path = mine["Download"]
        assert b"def model" in ask(place, path, {"Cookie": veras}).read()
        assert ask(place, path, {"Cookie": ottos}).status == 404
        assert ask(place, path).status == 401
        with downloads(place, ottos, *model) as theirs:
            assert theirs["Download"] == path
            assert ask(place, path, {"Cookie": ottos}).status == 200


def test_everything_that_a_run_offers_can_be_taken_away(
    server: tuple[str, str], seeded: seed.Seeded
) -> None:
    place, cookie = server
    with downloads(place, cookie, Page.RUN, seeded.succeeded) as found:
        assert len(found) >= 5
        for label, path in found.items():
            assert path, f"{label} was not made"
            answer = ask(place, path, {"Cookie": cookie})
            assert (answer.status, len(answer.read()) > 0) == (200, True), label


class TestFilesOfRuns:
    """They may have many GiB: the server hands them on in pieces."""

    @pytest.fixture
    def kept(self, seeded: seed.Seeded) -> tuple[str, bytes]:
        """The path of a file of the succeeded run, and its bytes."""
        backend = seed.fresh()
        artifact = backend.runs.artifacts.list(seeded.succeeded)[0]
        backend.close()
        return artifact_link(seeded.succeeded, artifact), artifact.path.read_bytes()

    def test_a_file_is_handed_out_whole_or_in_part(
        self, server: tuple[str, str], kept: tuple[str, bytes]
    ) -> None:
        (place, cookie), (path, data) = server, kept
        whole = ask(place, path, {"Cookie": cookie})
        assert (whole.status, whole.read()) == (200, data)
        assert whole.getheader("Content-Disposition", "").startswith("attachment")
        rest = ask(place, path, {"Cookie": cookie, "Range": "bytes=1-"})
        assert (rest.status, rest.read()) == (206, data[1:])

    def test_nobody_gets_it_without_signing_in(
        self, server: tuple[str, str], kept: tuple[str, bytes]
    ) -> None:
        assert ask(server[0], kept[0]).status == 401

    @pytest.mark.parametrize(
        "path",
        [
            "/files/runs/99/weights",
            "/files/runs/{run}/none",
            "/files/runs/{run}/..%2F..%2Fstageflow.db",
            "/files/checkpoints/99/stage-0.safetensors",
        ],
    )
    def test_what_is_not_there_is_said(
        self, server: tuple[str, str], seeded: seed.Seeded, path: str
    ) -> None:
        place, cookie = server
        answer = ask(place, path.format(run=seeded.succeeded), {"Cookie": cookie})
        assert answer.status in (400, 404)
        assert b"Traceback" not in answer.read()
