"""Writes the copies of a checkpoint in a thread of its own, while training goes on."""

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from safetensors.torch import save_file
from torch import Tensor

from backend.runs.events import Saved
from workers.runtime.reporter import Reporter


@dataclass(frozen=True, slots=True)
class Part:
    """A file to be written, and what to say once it is there."""

    tensors: dict[str, Tensor]
    lane: int
    event: Saved


class Writer:
    """At most one part waits while another is written: `put` waits for room, so the copies
    never take more memory than twice the rank's state."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._parts: Queue[Part | None] = Queue(maxsize=1)
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def put(self, part: Part) -> None:
        """Raises what an earlier part met (a full disk)."""
        self._raise()
        self._parts.put(part)

    def close(self) -> None:
        """Wait until everything is written; raises what a part met."""
        self._parts.put(None)
        self._thread.join()
        self._raise()

    def _work(self) -> None:
        while (part := self._parts.get()) is not None:
            try:
                _write(part)
            except Exception as error:
                self._error = self._error or error
            else:
                self._reporter(part.event)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error


def _write(part: Part) -> None:
    """Under another name first: a file that has its name is whole."""
    path = Path(part.event.path)
    unfinished = path.with_suffix(".unfinished")
    save_file(part.tensors, unfinished, {"lane": str(part.lane)})
    os.replace(unfinished, path)
