"""What the ranks print and tell, as it comes: reader threads put every line into one queue."""

import queue
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from backend.runs.events import MAX_EVENT, Event, read_line

MAX_LINE = 16_384
"""Longest line in characters that is printed; a longer one is cut into several."""
MAX_WAITING = 10_000
"""Lines held before a rank's print has to wait for the supervisor."""
MAX_TAKEN = 1_000


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A line that a rank printed, or told on its pipe of events: Unix seconds, without the
    newline."""

    rank: int
    time: float
    text: str
    is_event: bool = False

    @property
    def event(self) -> Event | None:
        """What the rank tells of itself; None for what goes into the log: all that is printed,
        whatever it looks like, and what the pipe of events has beside them."""
        event = read_line(self.text) if self.is_event else None
        return event if getattr(event, "rank", self.rank) == self.rank else None


class Lines:
    """The lines of all ranks, in the order of their arrival."""

    def __init__(self) -> None:
        self._queue: queue.Queue[PrintedLine] = queue.Queue(MAX_WAITING)
        self._threads: list[threading.Thread] = []
        self._closed = False

    def listen(self, rank: int, pipe: IO[str], events: bool = False) -> None:
        """Read `pipe`, which has what is printed or `events`, to its end in a thread of its own."""
        thread = threading.Thread(target=self._read, args=(rank, pipe, events), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _read(self, rank: int, pipe: IO[str], events: bool) -> None:
        with pipe:
            while text := pipe.readline(MAX_EVENT if events else MAX_LINE):
                self.add(PrintedLine(rank, time.time(), text.rstrip("\n"), events))

    def add(self, line: PrintedLine) -> None:
        """A line that came another way; waits where too many are here already."""
        while not self._closed:
            with suppress(queue.Full):
                self._queue.put(line, timeout=0.5)
                break

    def take(self, seconds: float) -> list[PrintedLine]:
        """Wait at most `seconds` for a line; return all that are here (at most 1,000)."""
        taken: list[PrintedLine] = []
        with suppress(queue.Empty):
            taken.append(self._queue.get(timeout=seconds))
            while len(taken) < MAX_TAKEN:
                taken.append(self._queue.get_nowait())
        return taken

    def rest(self, seconds: float = 2.0) -> list[PrintedLine]:
        """The lines up to the end of the pipes, waiting at most `seconds` for it, and no
        more after that: for when the ranks have ended."""
        deadline = time.monotonic() + seconds
        taken: list[PrintedLine] = []
        while time.monotonic() < deadline:
            taken += self.take(0.05)
            if self._queue.empty() and not any(t.is_alive() for t in self._threads):
                break
        self._closed = True
        return taken
