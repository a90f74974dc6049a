"""Whoever is slow to say what it wants is let go, so that a few clients cannot hold every
connection that the dashboard may have."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PATIENCE = 30.0
"""Seconds from a connection, from a request's first byte, or from an answer, until the headers of a
request are there."""
LEAST_RATE = 500
"""Bytes per second of a body, on average over `PATIENCE`."""


class HurriedProtocol(HttpToolsProtocol):
    """Uvicorn's own, which waits for ever for headers and bodies."""

    _late: asyncio.TimerHandle | None = None
    _in_body = False
    _received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._met()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Another protocol has the connection from here on."""
        self._met()
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        self._expect()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_body, self._received = True, 0
        self._expect()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self._met()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Bytes that begin no request keep a connection open, too."""
        super().on_response_complete()
        if not self._in_body:
            self._expect()

    def _expect(self) -> None:
        self._met()
        self._late = self.loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        if self.is_slow():
            self.transport.close()
        else:
            self._received = 0
            self._expect()

    def is_slow(self) -> bool:
        """Not while a request is being answered, nor while its body waits to be read here."""
        is_answered = self.cycle is None or self.cycle.response_complete
        if self._in_body and not is_answered:
            return not self.flow.read_paused and self._received < LEAST_RATE * PATIENCE
        return is_answered

    def _met(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
