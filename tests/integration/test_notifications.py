"""People are told that a run has ended, by a real webhook; whatever goes wrong, the run ends."""

import json
import logging
import socketserver
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from backend.bootstrap import Backend, connect
from backend.runs.history.notices import HUNG, PlaceKind, RunEvent
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import Run, RunError, RunSummary
from backend.runs.states import RunState
from backend.settings import Settings
from tests.migrated import migrated


class Webhook(HTTPServer):
    """Keeps what it is sent, and answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.told: list[dict[str, str]] = []
        self.status = 200

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Webhook)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.told.append(json.loads(body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    server = Webhook()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def backend_telling(home: Path, notify: str) -> Backend:
    settings = Settings(
        home=home,
        node="here",
        notify=notify,
        notify_internal="127.0.0.1",
        public_url="https://flow.example/",
    )
    migrated(settings)
    return connect(settings)


def submitted(backend: Backend, name: str = "tiny") -> Run:
    definition = backend.definitions.add("tiny.py", b"def model(): ...\n")
    return backend.runs.submit(ProfileSpec(definition.id), name)


def failed(backend: Backend, run: Run) -> None:
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    attempt.finish(
        RunState.FAILED, RunSummary(), RunError("DiskFull", "the disk is full", "Free some space.")
    )


def test_every_end_is_told_once(home: Path, webhook: Webhook) -> None:
    backend = backend_telling(home, f"json://{webhook.place}/hook")
    run = submitted(backend)
    failed(backend, run)
    waiting = submitted(backend, "not needed")
    backend.runs.cancel(waiting.id)
    backend.runs.cancel(waiting.id)
    backend.close()
    first, second = webhook.told
    assert first["title"] == "Stageflow: tiny failed"
    assert "the disk is full\nFree some space." in first["message"]
    assert f"https://flow.example/run?id={run.id}" in first["message"]
    assert second["title"] == "Stageflow: not needed cancelled"


def test_a_lost_run_is_told_too(home: Path, webhook: Webhook) -> None:
    backend = backend_telling(home, f"json://{webhook.place}")
    run = submitted(backend)
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt._stores.runs.beat(attempt.fence, lease=-1.0)
    assert list(backend.dispatch.expire()) == [run.id]
    backend.close()
    assert "did not renew its lease" in webhook.told[0]["message"]


@pytest.mark.parametrize(
    "notify", ["json://someone:hunter2@127.0.0.1:9/secret-path", "nonsense://hunter2", "hunter2"]
)
def test_a_place_that_does_not_take_it_harms_no_run_and_is_not_named(
    home: Path, notify: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    backend = backend_telling(home, notify)
    run = submitted(backend)
    with caplog.at_level(logging.DEBUG):
        failed(backend, run)
        backend.close()
    assert backend.runs.get(run.id).state is RunState.FAILED
    said = caplog.text + "".join(capfd.readouterr())
    assert "notification 1 of 1 was not delivered" in said
    assert "hunter2" not in said
    assert "secret-path" not in said


def test_one_broken_place_does_not_keep_the_next_from_hearing(home: Path, webhook: Webhook) -> None:
    backend = backend_telling(home, f"json://127.0.0.1:9 json://{webhook.place}")
    failed(backend, submitted(backend))
    backend.close()
    assert len(webhook.told) == 1


class Mailbox(socketserver.BaseRequestHandler):
    """Just enough of SMTP (RFC 5321) to take a mail."""

    def handle(self) -> None:
        lines = self.request.makefile("rwb")
        lines.write(b"220 here\r\n")
        lines.flush()
        in_data = False
        for line in lines:
            self.server.taken.append(line.decode())  # type: ignore[attr-defined]
            if in_data and line != b".\r\n":
                continue
            in_data = line.upper().startswith(b"DATA")
            lines.write(b"354 go on\r\n" if in_data else b"250 well\r\n")
            lines.flush()
            if line.upper().startswith(b"QUIT"):
                return


def test_people_are_told_where_they_chose(home: Path, webhook: Webhook) -> None:
    """By a chat, a webhook and mail, of the events that they chose; a stall is told too."""
    with socketserver.TCPServer(("127.0.0.1", 0), Mailbox) as smtp:
        smtp.taken = []  # type: ignore[attr-defined]
        threading.Thread(target=smtp.serve_forever, daemon=True).start()
        mail = f"mailto://127.0.0.1:{smtp.server_address[1]}?from=flow@example.org&mode=insecure"
        settings = Settings(home=home, node="here", notify_internal="127.0.0.1", notify_mail=mail)
        migrated(settings)
        backend = connect(settings)
        url = f"http://{webhook.place}"
        backend.notices.add(PlaceKind.CHAT, f"{url}/chat", (RunEvent.FAILED,))
        backend.notices.add(PlaceKind.WEBHOOK, f"{url}/hook?key=1", (RunEvent.STALLED,))
        backend.notices.add(PlaceKind.MAIL, "ada@example.org", (RunEvent.FAILED,))
        run = submitted(backend)
        failed(backend, run)
        backend.notifier.stalled(run, RunError(HUNG, "rank 1 stood still"))
        hook = backend.notices.list()[1]
        assert backend.notices.try_now(hook) == ""
        backend.close()
        smtp.shutdown()
    said, stalled, test = sorted(webhook.told, key=len)[0], *_titled(webhook.told)
    assert list(said) == ["text"]
    assert said["text"].startswith("Stageflow: tiny failed\n")
    assert stalled["title"] == "Stageflow: tiny stalled"
    assert "rank 1 stood still\nIt goes on by itself." in stalled["message"]
    assert test["title"] == "Stageflow: a test"
    mail = "".join(smtp.taken)  # type: ignore[attr-defined]
    assert "RCPT TO:<ada@example.org>" in mail.replace("rcpt TO", "RCPT TO")
    assert "Stageflow: tiny failed" in mail


def _titled(told: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted((each for each in told if "title" in each), key=lambda e: "test" in e["title"])


def test_nobody_is_sent_inside_by_a_place_of_theirs(home: Path, webhook: Webhook) -> None:
    settings = Settings(home=home, node="here")
    migrated(settings)
    backend = connect(settings)
    place = backend.notices.add(PlaceKind.WEBHOOK, f"http://{webhook.place}/x")
    assert "its address 127.0.0.1 is internal" in backend.notices.try_now(place)
    backend.close()
    assert webhook.told == []
