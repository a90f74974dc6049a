"""Work of which few do at once: the others wait in a queue that has an end."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Semaphore

from backend.errors import StageflowError


class TooBusy(StageflowError):
    """More ask for the same at once than may wait for it."""

    advice = "Try again in some seconds."


class FewAtOnce:
    """`most` threads at once are in `turn`, and `waiting` wait for theirs."""

    def __init__(self, what: str, most: int = 2, waiting: int = 20) -> None:
        self._what = what
        self._turns = Semaphore(most)
        self._places = most + waiting
        self._lock = Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one. Raises `TooBusy` at once where too many wait."""
        with self._lock:
            if not self._places:
                raise TooBusy(f"too many ask for {self._what} at once")
            self._places -= 1
        try:
            with self._turns:
                yield
        finally:
            with self._lock:
                self._places += 1
