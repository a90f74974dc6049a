"""Work beside the compute: items done one after the other in a thread."""

import threading
from collections.abc import Callable
from queue import Queue
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundWorker(Generic[T]):
    """Does `work` with each item in turn. At most `most` of them wait while another is worked on
    (0: any number); `put` waits for room."""

    def __init__(self, work: Callable[[T], object], most: int = 0) -> None:
        self._work = work
        self._items: Queue[T] = Queue(most)
        self._error: Exception | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, item: T) -> None:
        """Raises what an earlier item raised."""
        self._raise()
        self._items.put(item)

    def join(self) -> None:
        """Wait until all are done; raises what the first that failed raised."""
        self._items.join()
        self._raise()

    def _run(self) -> None:
        while True:
            item = self._items.get()
            try:
                self._work(item)
            except Exception as error:
                self._error = self._error or error
            finally:
                del item  # it may hold much memory
                self._items.task_done()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
