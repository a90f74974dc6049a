"""A gibibyte, by every door: refused, and the server's memory hardly grows."""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from itertools import chain
from pathlib import Path
from select import select

import psutil
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from tests.app.test_gate_of_pages import UPGRADE, ask, server  # noqa: F401 (server: a fixture)

GIBIBYTE = 1024**3
CHUNK = bytes(1 << 20)
AFTERWARDS = 64 * 1024**2
MOST_GROWTH = 20 * 1024**2
UPLOAD = "/_stcore/upload_file/session/file"
BODIES = {
    "upload": ("PUT", UPLOAD),
    "form": ("POST", "/sign-in"),
    "API": ("POST", "/api/v1/definitions"),
    "page": ("POST", "/runs"),
    "component": ("POST", "/_stcore/bidi-components/x"),
}


def process_at(place: str) -> int:
    """The server's process id."""
    port = int(place.rpartition(":")[2])
    return next(
        child.pid
        for child in psutil.Process(os.getpid()).children(recursive=True)
        if any(c.laddr.port == port for c in child.net_connections() if c.status == "LISTEN")
    )


class Peak:
    """The most memory that a process has held since this was made, VmHWM."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        self._before = self._now()

    @property
    def growth(self) -> int:
        return self._now() - self._before

    def _now(self) -> int:
        lines = self._status.read_text().splitlines()
        return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


def head(place: str, method: str, path: str, **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {place}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "", "")).encode()


def flooded(place: str, first: bytes, parts: Iterator[bytes], upgrade: bool = False) -> bytes:
    """What the server says to somebody who sends a gibibyte, and 64 MiB more once it has
    answered, or until it listens no more."""
    address, _, port = place.partition(":")
    with socket.create_connection((address, int(port)), timeout=240) as connection:
        connection.sendall(first)
        said = connection.recv(4096) if upgrade else b""
        connection.setblocking(False)
        left, rest = AFTERWARDS, memoryview(b"")
        while left > 0:
            rest = rest or memoryview(next(parts, b""))
            answered = b"\r\n\r\n" in said and not said.startswith(b"HTTP/1.1 101")
            patience = 1.0 if answered else 60.0
            readable, writable, _ = select([connection], [connection] if rest else [], [], patience)
            if not readable and not writable:
                return said
            try:
                if readable:
                    data = connection.recv(4096)
                    if not data:
                        return said
                    said += data
                if writable:
                    sent = connection.send(rest)
                    rest = rest[sent:]
                    left -= sent if answered else 0
            except OSError:
                return said
        return said


def plain() -> Iterator[bytes]:
    for _ in range(GIBIBYTE // len(CHUNK)):
        yield CHUNK


def chunked() -> Iterator[bytes]:
    for _ in range(GIBIBYTE // len(CHUNK)):
        yield b"100000\r\n" + CHUNK + b"\r\n"
    yield b"0\r\n\r\n"


def one_frame() -> Iterator[bytes]:
    """RFC 6455 section 5.2: a masked binary frame."""
    yield b"\x82\xff" + struct.pack(">Q", GIBIBYTE) + bytes(4)
    yield from plain()


def many_frames() -> Iterator[bytes]:
    """A message in fragments that never ends."""
    for number in range(GIBIBYTE // len(CHUNK)):
        first = b"\x02" if number == 0 else b"\x00"
        yield first + b"\xff" + struct.pack(">Q", len(CHUNK)) + bytes(4) + CHUNK


@pytest.mark.parametrize("who", ["nobody", "a person"])
@pytest.mark.parametrize("how", ["a length", "chunks"])
@pytest.mark.parametrize("door", BODIES)
def test_a_gibibyte_of_body_is_refused(
    server: tuple[str, str],  # noqa: F811
    door: str,
    how: str,
    who: str,
) -> None:
    place, cookie = server
    method, path = BODIES[door]
    headers = {"Cookie": cookie} if who == "a person" else {}
    headers |= {"Content_Type": "application/json" if door == "API" else "multipart/form-data"}
    if how == "a length":
        first = head(place, method, path, Content_Length=str(GIBIBYTE), **headers)
    else:
        first = head(place, method, path, Transfer_Encoding="chunked", **headers)
    peak = Peak(process_at(place))
    said = flooded(place, first, plain() if how == "a length" else chunked())
    if said:  # a connection that is closed while one sends may take the answer with it
        assert said.split()[1] in (b"400", b"401", b"403", b"404", b"405", b"413"), said[:200]
        assert who == "a person" or door == "form" or said.split()[1] == b"401"
    assert peak.growth <= MOST_GROWTH


@pytest.mark.parametrize("frames", [one_frame, many_frames])
def test_a_gibibyte_by_websocket_is_refused(server: tuple[str, str], frames) -> None:  # noqa: F811
    place, cookie = server
    peak = Peak(process_at(place))
    ours = {name.replace("-", "_"): value for name, value in UPGRADE.items()}
    ours |= {"Cookie": cookie, "Origin": f"http://{place}", "Sec_WebSocket_Protocol": "streamlit"}
    said = flooded(place, head(place, "GET", "/_stcore/stream", **ours), frames(), True)
    assert said.startswith(b"HTTP/1.1 101")
    assert peak.growth <= MOST_GROWTH
    del ours["Cookie"]
    said = flooded(place, head(place, "GET", "/_stcore/stream", **ours), frames(), True)
    assert said.startswith(b"HTTP/1.1 403")
    assert peak.growth <= MOST_GROWTH


@contextmanager
def on_a_page(place: str, cookie: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Where an open page of this person uploads to, and the headers with which it may."""
    shown = ask(place, "/_stcore/health", {"Cookie": cookie})
    token = SimpleCookie(shown.headers["set-cookie"])["_streamlit_xsrf"].value
    with connect(
        f"ws://{place}/_stcore/stream",
        subprotocols=[Subprotocol("streamlit")],
        origin=Origin(f"http://{place}"),
        additional_headers={"Cookie": cookie},
        max_size=None,
    ) as page:
        question = BackMsg()
        question.rerun_script.page_name = "models"
        page.send(question.SerializeToString())
        answer = ForwardMsg()
        while answer.WhichOneof("type") != "new_session":
            answer = ForwardMsg.FromString(page.recv())
        session = answer.new_session.initialize.session_id
        headers = {"Cookie": f"{cookie}; _streamlit_xsrf={token}", "X_Xsrftoken": token}
        headers["Content_Type"] = "multipart/form-data; boundary=edge"
        yield f"/_stcore/upload_file/{session}/a-file", headers


HEAD = b'--edge\r\nContent-Disposition: form-data; name="f"; filename="w.safetensors"\r\n\r\n'


def test_a_page_takes_a_file_and_no_gibibyte(server: tuple[str, str]) -> None:  # noqa: F811
    place, cookie = server
    with on_a_page(place, cookie) as (path, headers):
        small = HEAD + 8 * CHUNK + b"\r\n--edge--\r\n"
        first = head(place, "PUT", path, Content_Length=str(len(small)), **headers)
        assert flooded(place, first, iter([small])).startswith(b"HTTP/1.1 204")
        peak = Peak(process_at(place))
        first = head(place, "PUT", path, Content_Length=str(GIBIBYTE), **headers)
        assert flooded(place, first, chain([HEAD], plain())).startswith(b"HTTP/1.1 413")
        first = head(place, "PUT", path, Transfer_Encoding="chunked", **headers)
        opening = f"{len(HEAD):x}\r\n".encode() + HEAD + b"\r\n"
        assert flooded(place, first, chain([opening], chunked())).startswith(b"HTTP/1.1 413")
        assert peak.growth <= MOST_GROWTH


def test_the_server_still_answers(server: tuple[str, str]) -> None:  # noqa: F811
    place, cookie = server
    said = flooded(place, head(place, "GET", "/runs", Cookie=cookie, Connection="close"), iter(()))
    assert said.startswith(b"HTTP/1.1 200")
