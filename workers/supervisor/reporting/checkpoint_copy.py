"""Checkpoints on their way from the ranks to where they are kept, in a thread of its own."""

import os
import shutil
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from math import inf
from pathlib import Path
from queue import Queue
from typing import IO

from backend.hashing import counted, to_disk
from backend.runs.attempts.checkpoints import CheckpointFile, Mark, part_of
from backend.runs.events import Saved
from workers.supervisor.reporting.announced import opened
from workers.supervisor.reporting.handed_over import HandedOver
from workers.supervisor.spool.entries import CopiedCheckpoint


class CheckpointCopier:
    """Copies what the ranks announce to `place(step)`, with its hash. A checkpoint is `copied`
    when all of its parts are there, written through to the disk, whichever replica they are from.
    One that a rank of another host heard of too late never is: its files are removed once a later
    one is copied, because what a rank announces comes in its order, or when the attempt is over.

    The thread starts with the first file. `folder` is the one in which the ranks write.
    """

    def __init__(self, folder: Path, place: Callable[[int], Path], handed_over: HandedOver) -> None:
        self._folder, self._place, self._handed_over = folder, place, handed_over
        self._waiting: Queue[Saved] = Queue()
        self._files: dict[Mark, dict[str, CheckpointFile]] = defaultdict(dict)
        self._newest = -1
        self._copied: deque[CopiedCheckpoint] = deque()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def copy(self, event: Saved) -> None:
        """A rank has written a file."""
        self._waiting.put(event)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def copied(self) -> list[CopiedCheckpoint]:
        """The checkpoints that were completed since the last call."""
        return [self._copied.popleft() for _ in range(len(self._copied))]

    def check(self) -> None:
        """Raises what the copying met: a full disk, a file outside the ranks' folder."""
        if self._error is not None:
            raise self._error

    @property
    def is_idle(self) -> bool:
        """Is everything copied that was announced, or is there no more hope?"""
        return self._error is not None or not self._waiting.unfinished_tasks

    def close(self) -> None:
        """The attempt is over. What is being copied still, the next one removes."""
        if self.is_idle:
            self._drop(inf)

    def _work(self) -> None:
        while self._error is None:
            event = self._waiting.get()
            try:
                self._copy(event)
            except Exception as error:
                self._error = error
            self._waiting.task_done()

    def _copy(self, event: Saved) -> None:
        mark = Mark(event.epoch, event.samples, event.step, event.best)
        place, name = self._place(event.step), Path(event.path).name
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        with opened(self._folder, event.path) as announced, announced.path.open("rb") as source:
            part = part_of(name)
            if mark.step <= self._newest or part in self._files[mark]:
                return  # another replica has saved it as well
            files = self._files[mark]
            size = announced.size
            self._handed_over.add(size)
            files[part] = copy_file(source, place / name, size)
        if len(files) == event.num_files:
            _settle(place)
            self._copied.append(
                CopiedCheckpoint(mark, tuple(files[part] for part in sorted(files)))
            )
            self._newest = mark.step
            self._let_go(mark)
            self._drop(mark.step)

    def _drop(self, step: float) -> None:
        """Remove what was copied of checkpoints before `step` that were never completed."""
        for mark in [mark for mark in self._files if mark.step < step]:
            self._let_go(mark)
            if mark.step != self._newest:
                shutil.rmtree(self._place(mark.step), ignore_errors=True)

    def _let_go(self, mark: Mark) -> None:
        for file in self._files.pop(mark).values():
            self._handed_over.let_go(file.size)


def copy_file(source: IO[bytes], path: Path, most: float = inf) -> CheckpointFile:
    """Copy at most so many bytes to `path`, whole or not at all, and through to the disk; what was
    copied. Raises `FileGrew`."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    with unfinished.open("wb") as copy:
        digest, size = counted(source, copy, most)
        to_disk(copy)
    os.replace(unfinished, path)
    return CheckpointFile(path.name, size, digest)


def _settle(folder: Path) -> None:
    """Let the folder's own entries reach the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
