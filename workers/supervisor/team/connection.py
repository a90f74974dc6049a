"""What two agents say to each other about a run: JSON lines, some with bytes behind them."""

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from backend.errors import StageflowError

MAX_HEAD = 1 << 20
CHUNK = 1 << 20
ALIVE = {
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 25_000,
}
"""Seconds of silence, seconds between questions, and questions without an answer after which a
machine that lost its power counts as gone; and the same in milliseconds where something is on
its way to it, because then nothing is asked."""


Moved = Callable[[], None]
"""Called for every piece of a file that went over."""


def still() -> None:
    """Nobody wants to know how a file moves."""


class BadFrame(StageflowError):
    """The other side does not speak as agents do."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection, read in order by one thread and written by one."""

    tcp: socket.socket
    stream: BinaryIO

    @staticmethod
    def over(opened: socket.socket) -> "Connection":
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in ALIVE.items():
            if hasattr(socket, name):
                opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return Connection(opened, opened.makefile("rb"))

    def send(self, **head: Any) -> None:
        """Raises `OSError` where the other side is gone."""
        self.tcp.sendall(json.dumps(head).encode() + b"\n")

    def send_file(self, source: BinaryIO, size: int, moved: Moved = still, **head: Any) -> None:
        """The head with the first `size` bytes of a file; raises `OSError`."""
        self.send(**head, size=size)
        while size:
            data = source.read(min(CHUNK, size)) or bytes(size)  # it shrank: they are not missed
            self.tcp.sendall(data)
            size -= len(data)
            moved()

    def receive(self) -> dict[str, Any] | None:
        """The next head; None where the other side has ended. Raises `BadFrame`, `OSError`."""
        line = self.stream.readline(MAX_HEAD)
        if not line:
            return None
        try:
            head = json.loads(line)
        except ValueError as fault:
            raise BadFrame(f"{line[:60]!r} is no frame") from fault
        if not isinstance(head, dict):
            raise BadFrame(f"{line[:60]!r} is no frame")
        return head

    def receive_file(self, target: BinaryIO, size: int, moved: Moved = still) -> None:
        """Write the bytes behind a head. Raises `BadFrame` where they end before."""
        while size:
            data = self.stream.read(min(CHUNK, size))
            if not data:
                raise BadFrame(f"a file ended {size:,} bytes too early")
            target.write(data)
            size -= len(data)
            moved()

    def close(self) -> None:
        """The other side hears the end."""
        with suppress(OSError):
            self.tcp.shutdown(socket.SHUT_RDWR)
        self.tcp.close()
