"""Searches in processes of their own, so that pages are drawn at full speed meanwhile.

A planner computes for seconds, and an interpreter computes for one thread at a time.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import LifoQueue
from signal import Signals
from typing import Any, TypeVar

from app.server.searcher import Said
from backend.cores import usable_cores
from backend.errors import StageflowError
from backend.prediction.watch import UNWATCHED, Watch

T = TypeVar("T")
MOST = 4
"""Whole searches at once, on any machine: each takes a process with its memory."""
LOOK = 0.05
"""Seconds between two looks whether a search is to end."""
PATIENCE = 2.0
"""Seconds that a search which nobody reads any longer has to end by itself."""
PROGRAM = "from app.server.searcher import main; main()"
"""Not `-m`, under which both ends would know what is sent by different names."""


class SearcherEnded(StageflowError):
    """The process of a search ended in the middle of it: killed, or out of memory."""

    advice = (
        "Plan again: a new process does it. Where that ends too, this machine may have too little "
        "memory: ask for one planner and one schedule, or for fewer devices."
    )


class SearchBroke(Exception):
    """A fault of ours in a search; the text is its traceback."""


class Searchers:
    """At most so many processes, each started when it is first needed; who asks while all of them
    search waits for the first that is free."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._free = LifoQueue["_Searcher"]()
        for _ in range(most):
            self._free.put(_Searcher())

    def start(self) -> None:
        """Start one ahead of the first question."""
        searcher = self._free.get()
        searcher.start()
        self._free.put(searcher)

    def search(
        self, make: Callable[..., Iterable[T]], *given: Any, watch: Watch = UNWATCHED
    ) -> Generator[T, None, None]:
        """What `make(*given, watch)` yields, as it comes; `make` is a function of a module. Raises
        what that raises, `SearchBroke` for a fault of ours, and `SearcherEnded`."""
        searcher = self._free.get()
        try:
            if watch.stop():  # while it waited for its turn
                return
            yield from searcher.search(make, given, watch)
        finally:
            self._free.put(searcher)


class _Searcher:
    """One process, and a new one in its place where it has ended."""

    def __init__(self) -> None:
        self._number = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def start(self) -> Connection:
        """The connection to it. It gets no settings: they hold passwords."""
        if self._connection and self._process and self._process.poll() is None:
            return self._connection
        mine, other = socket.socketpair()
        number = other.fileno()
        command = [sys.executable, "-c", PROGRAM, str(number)]
        env = {name: v for name, v in os.environ.items() if not name.startswith("STAGEFLOW_")}
        with other:
            self._process = subprocess.Popen(
                command, env=env, pass_fds=[number], stdin=subprocess.DEVNULL
            )
        self._connection = Connection(mine.detach())
        return self._connection

    def search(
        self, make: Callable[..., Iterable[T]], given: tuple[Any, ...], watch: Watch
    ) -> Generator[T, None, None]:
        connection = self.start()
        self._number += 1
        has_ended, is_told = True, False  # until it is asked
        fault: Exception | None = None
        try:
            connection.send((self._number, (make, given)))
            has_ended = False
            while not has_ended:
                if not is_told and watch.stop():
                    connection.send((self._number, None))
                    is_told = True
                if not connection.poll(LOOK):
                    continue
                heard: tuple[Said, Any] = connection.recv()
                said, what = heard
                match said:
                    case Said.PROGRESS:
                        watch.progress(*what)
                    case Said.ITEM:
                        yield what
                    case Said.FAULT:
                        fault = what
                    case Said.BROKEN:
                        fault = SearchBroke(what)
                    case Said.END:
                        has_ended = True
        except (EOFError, OSError):
            has_ended = True
            fault = self._gone()
        finally:
            if not has_ended:
                self._leave(connection)
        if fault:
            raise fault

    def _gone(self) -> SearcherEnded:
        """How it ended."""
        code = self._end()
        how = Signals(-code).name if code < 0 else f"exit code {code}"
        return SearcherEnded(f"the process that planned has ended ({how})")

    def _leave(self, connection: Connection) -> None:
        """Let it end what nobody reads any longer; end it where it does not."""
        end = time.monotonic() + PATIENCE
        with suppress(EOFError, OSError):
            connection.send((self._number, None))
            while connection.poll(max(0.0, end - time.monotonic())):
                if connection.recv()[0] is Said.END:
                    return
        self._end()

    def _end(self) -> int:
        """Its exit code; killed where it does not end by itself."""
        process, connection = self._process, self._connection
        assert process
        assert connection
        connection.close()
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


QUICK = Searchers(1)
"""For first answers: none of them waits for a whole search, whoever asked for that."""
THOROUGH = Searchers(max(1, min(usable_cores() - 1, MOST)))
"""For whole searches. A core is left for pages."""


def start() -> None:
    """Start what the first question needs."""
    QUICK.start()
    THOROUGH.start()
