"""What a process of a run says: JSON lines on standard output, a heartbeat, and its end."""

import errno
import sys
import threading
import traceback
from collections.abc import Callable, Sized

from backend.errors import StageflowError
from backend.runs.events import Event, Failed, Finished, Heartbeat, Started, write_line

HEARTBEAT_SECONDS = 2.0


class Reporter:
    """Writes events, whole lines only, from any thread."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._counted: Sized | None = None

    def watch(self, counted: Sized) -> None:
        """Let the heartbeat tell the length of `counted`, which grows with every action."""
        self._counted = counted

    def __call__(self, event: Event) -> None:
        with self._lock:
            sys.stdout.write(write_line(event) + "\n")
            sys.stdout.flush()

    def log(self, text: str) -> None:
        """A line for people; it ends up in the run's log."""
        with self._lock:
            print(text, flush=True)

    def beat(self) -> None:
        """Send a heartbeat every two seconds until the work ends."""
        while not self._ended.wait(HEARTBEAT_SECONDS):
            self(Heartbeat(self.rank, None if self._counted is None else len(self._counted)))

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
        self(Started(self.rank))


def failed(rank: int, error: Exception) -> Failed:
    """The error as an event: its kind, what a person reads, and the traceback."""
    if isinstance(error, StageflowError):
        detail = getattr(error, "detail", "")
        return Failed(rank, type(error).__name__, str(error), error.advice, detail)
    detail = "".join(traceback.format_exception(error))
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = f" while writing {error.filename}" if error.filename else ""
        advice = "Free some space where runs are kept (STAGEFLOW_HOME), then run it again."
        return Failed(rank, "DiskFull", f"The disk is full{place}.", advice, detail)
    if is_out_of_memory(error):
        advice = "Use smaller microbatches, or more stages."
        return Failed(rank, "OutOfMemory", f"Rank {rank} ran out of memory.", advice, detail)
    if _is_lost_peer(error):
        advice = "Look at the other ranks: one of them ended first."
        return Failed(rank, "PeerLost", f"Rank {rank} lost another rank.", advice, detail)
    return Failed(rank, type(error).__name__, str(error) or type(error).__name__, detail=detail)


def is_out_of_memory(error: Exception) -> bool:
    """Whether Python, torch or CUDA say that no memory is left."""
    text = str(error).lower()
    signs = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(sign in text for sign in signs)


def _is_lost_peer(error: Exception) -> bool:
    """Whether gloo says that the other side of a connection went away."""
    signs = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)
