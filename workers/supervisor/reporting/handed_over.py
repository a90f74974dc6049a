"""How much an attempt may hand over to be kept, whatever it does with its own folder meanwhile."""

from threading import Lock

from backend.errors import StageflowError
from backend.units import bytes_text
from workers.sandbox.limits import Limits


class DiskFull(StageflowError):
    """A run has handed over more than it may keep."""


class HandedOver:
    """Counts the bytes of files that are copied out of the ranks' folder: reports, artifacts, and
    checkpoints until they are whole, of which the newest alone stay. None = no limit."""

    def __init__(self, limits: Limits | None) -> None:
        self._limits = limits
        self._bytes = self._files = 0
        self._lock = Lock()

    def add(self, num_bytes: int, num_files: int = 1) -> None:
        """So much more. Raises `DiskFull` before it is copied."""
        self._count(num_bytes, num_files)
        if self._limits is None:
            return
        if self._bytes > self._limits.disk:
            raise _breach(self._limits, "DiskFull", bytes_text(self._bytes))
        if self._files > self._limits.files:
            raise _breach(self._limits, "TooManyFiles", f"{self._files:,} files")

    def let_go(self, num_bytes: int) -> None:
        """One file less: it is removed, or belongs to a whole checkpoint."""
        self._count(-num_bytes, -1)

    def _count(self, num_bytes: int, num_files: int) -> None:
        with self._lock:
            self._bytes += num_bytes
            self._files += num_files


def _breach(limits: Limits, kind: str, found: str) -> DiskFull:
    error = limits.breach(kind, f"the run has handed over {found}")
    return DiskFull(error.message, error.advice)
