"""Who is let go at a look, and who is waited for."""

from types import SimpleNamespace

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.server.slow_clients import LEAST_RATE, PATIENCE, HurriedProtocol

ENOUGH = int(LEAST_RATE * PATIENCE)


@pytest.mark.parametrize(
    ("in_body", "received", "paused", "answered", "slow"),
    [
        (False, 0, False, None, True),
        (False, 0, False, True, True),
        (False, 0, False, False, False),
        (True, ENOUGH - 1, False, False, True),
        (True, ENOUGH, False, False, False),
        (True, 0, True, False, False),
        (True, ENOUGH, False, True, True),
    ],
    ids=[
        "no request",
        "none after an answer",
        "its answer takes long",
        "bytes of a body come slowly",
        "they come",
        "the server does not read them",
        "they come after the answer",
    ],
)
def test_who_is_slow(
    in_body: bool, received: int, paused: bool, answered: bool | None, slow: bool
) -> None:
    client = HurriedProtocol.__new__(HurriedProtocol)
    client._in_body, client._received = in_body, received
    client.flow = SimpleNamespace(read_paused=paused)  # type: ignore[assignment]  # all it asks
    cycle = None if answered is None else SimpleNamespace(response_complete=answered)
    client.cycle = cycle  # type: ignore[assignment]
    assert client.is_slow() is slow


def test_a_websocket_is_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    passed_on: list[object] = []

    def handle(client: object) -> None:
        passed_on.append(client)

    monkeypatch.setattr(HttpToolsProtocol, "handle_websocket_upgrade", handle)
    client = HurriedProtocol.__new__(HurriedProtocol)
    cancelled: list[bool] = []
    client._late = SimpleNamespace(cancel=lambda: cancelled.append(True))  # type: ignore[assignment]
    client.handle_websocket_upgrade()
    assert (passed_on, cancelled, client._late) == ([client], [True], None)
