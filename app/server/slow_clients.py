"""Whoever is slow to say what it wants is let go, so that a few clients cannot hold every
connection that the dashboard may have."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PATIENCE = 30.0
"""Seconds from a connection, or from a request's first byte, until its headers are there."""


class HurriedProtocol(HttpToolsProtocol):
    """Uvicorn's own, which waits for ever for the headers of a request."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._met()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._expect()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._met()
        super().on_headers_complete()

    def _expect(self) -> None:
        self._met()
        self._late = self.loop.call_later(PATIENCE, self._let_go)

    def _let_go(self) -> None:
        """Not while the request before is being answered."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._expect()
        else:
            self.transport.close()

    def _met(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
