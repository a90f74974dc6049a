"""A process that searches for plans, one question at a time, until who started it is gone.

It reads numbered questions from a socket, and the numbers of those that are to end. It knows no
settings, no database and no page.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from importlib import import_module
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

from backend.errors import StageflowError
from backend.prediction.watch import Watch

AHEAD = ("backend.comparison.sweep", "backend.prediction.fallbacks")
"""What searches import, imported before anybody asks."""
EVERY = 0.1
"""Seconds between two messages of how far a search is."""


Question = tuple[Callable[..., Iterable[Any]], tuple[Any, ...]]
"""A function of a module that searches, and what it is given beside a `Watch`."""


class Said(Enum):
    """What a searcher sends: how far it is, something found, why it ended early, that it ended."""

    PROGRESS, ITEM, FAULT, BROKEN, END = range(5)


def main() -> None:
    """Answer until the socket is closed at its other end; the program's argument is the number of
    its descriptor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started it
    for name in AHEAD:
        import_module(name)
    _Desk(Connection(int(sys.argv[1]))).serve()


class _Desk:
    """The socket, the questions that have come, and the numbers of those that are to end."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._questions = SimpleQueue[tuple[int, Question]]()
        self._ended: set[int] = set()

    def serve(self) -> None:
        Thread(target=self._read, daemon=True).start()
        while True:
            self._answer(*self._questions.get())

    def _read(self) -> None:
        """In a thread of its own: also in the middle of a search it ends with who started it."""
        with suppress(EOFError, OSError):
            while True:
                number, question = self._connection.recv()
                if question is None:
                    self._ended.add(number)
                else:
                    self._questions.put((number, question))
        os._exit(0)

    def _answer(self, number: int, question: Question) -> None:
        progress, (make, given) = _Progress(self._send), question
        try:
            for item in make(*given, Watch(progress, lambda: number in self._ended)):
                progress.last()
                self._send(Said.ITEM, item)
            progress.last()
        except StageflowError as fault:
            self._send(Said.FAULT, fault)
        except Exception:
            self._send(Said.BROKEN, traceback.format_exc())
        self._ended.discard(number)
        self._send(Said.END)

    def _send(self, said: Said, what: Any = None) -> None:
        self._connection.send((said, what))


class _Progress:
    """Sends how far a search is, at most every `EVERY` seconds."""

    def __init__(self, send: Any) -> None:
        self._send, self._sent_at = send, 0.0
        self._kept: tuple[str, int, int] | None = None

    def __call__(self, planner: str, done: int, total: int) -> None:
        self._kept = planner, done, total
        if time.monotonic() - self._sent_at >= EVERY:
            self.last()

    def last(self) -> None:
        """Send what was held back."""
        if self._kept is not None:
            self._send(Said.PROGRESS, self._kept)
            self._kept, self._sent_at = None, time.monotonic()
