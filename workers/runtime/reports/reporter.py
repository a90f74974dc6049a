"""What a process of a run says: events on their pipe, a heartbeat, and its end."""

import threading
from collections.abc import Callable, Sized

from backend.runs.events import Event, Finished, Heartbeat, Started
from workers.runtime.failures import failed
from workers.runtime.reports.event_pipe import tell
from workers.runtime.reports.use_meter import RankUseMeter

HEARTBEAT_SECONDS = 2.0


class Reporter:
    """Writes events, whole lines only, from any thread, into `pipe` (None: standard output)."""

    def __init__(self, rank: int, pipe: int | None = None) -> None:
        self.rank = rank
        self._pipe = pipe
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._counted: Sized | None = None
        self.has_started = threading.Event()

    def watch(self, counted: Sized | None) -> None:
        """Let the heartbeat tell the length of `counted`, which grows with every action; None while
        there are none, and nobody knows how long the rest takes."""
        self._counted = counted

    def __call__(self, event: Event) -> None:
        with self._lock:
            tell(self._pipe, event)

    def log(self, text: str) -> None:
        """A line for people; it ends up in the run's log."""
        with self._lock:
            print(text, flush=True)

    def beat(self) -> None:
        """Send a heartbeat every two seconds until the work ends."""
        meter = RankUseMeter()
        while not self._ended.wait(HEARTBEAT_SECONDS):
            done = None if self._counted is None else len(self._counted)
            self(Heartbeat(self.rank, done, meter()))

    def report(self, work: Callable[[], int]) -> int:
        """Do the work (it returns the epochs done) under a heartbeat; the exit code.

        An exception becomes one `Failed` line; what is no fault of the user's also leaves
        its traceback in the log.
        """
        threading.Thread(target=self.beat, daemon=True).start()
        try:
            epochs = work()
        except Exception as error:
            self(failed(self.rank, error))
            return 1
        finally:
            self._ended.set()
        self(Finished(self.rank, epochs))
        return 0

    def started(self) -> None:
        self.has_started.set()
        self(Started(self.rank))
