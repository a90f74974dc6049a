"""The last checkpoint of a run that somebody ends: asked for, and waited for a moment."""

import os
import time
from contextlib import suppress
from pathlib import Path

from workers.supervisor.ending import Ending

REQUEST = "save-now"
"""The file that asks the ranks for a checkpoint (`workers.runtime.checkpoint`)."""
PATIENCE = 1.5
"""Seconds for it, of the three within which a cancelled run is gone."""


class Parting:
    """`folder` is the one in which the ranks write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._wish: Ending | None = None
        self._deadline = 0.0
        self._num_before = 0

    @property
    def wish(self) -> Ending | None:
        """The end that was asked for."""
        return self._wish

    def ask(self, wish: Ending, can_save: bool, num_checkpoints: int) -> None:
        """End the run like this, after one more checkpoint where its ranks make any."""
        if self._wish is None:
            self._wish, self._num_before = wish, num_checkpoints
            self._deadline = time.monotonic() + (PATIENCE if can_save else 0.0)
            if can_save:
                mark(self._folder, REQUEST)

    def is_over(self, num_checkpoints: int) -> bool:
        """Is there a newer checkpoint, or no more time?"""
        if self._wish is None:
            return False
        return num_checkpoints > self._num_before or time.monotonic() >= self._deadline


def mark(folder: Path, name: str) -> None:
    """Put an empty file there, which the ranks look for and follows no link of theirs."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_NOFOLLOW
    with suppress(FileExistsError):  # they may put there what they like
        os.close(os.open(folder / name, flags, 0o644))
