"""Files that ranks announce, opened so that no link leads out of their folder."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from backend.errors import StageflowError
from backend.units import bytes_text

MAX_READ = 64 * 1024**2
"""Bytes of a file that the agent takes into its own memory."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


class ReportOutside(StageflowError):
    """A rank announced a file that is not its own."""

    advice = "A definition must leave its rank's pipe of events and its reports alone."


class ReportTooLarge(StageflowError):
    """A rank announced a report that the agent will not take into its memory."""

    advice = "A definition must leave its rank's pipe of events and its reports alone."


@dataclass(frozen=True, slots=True)
class Announced:
    """An open file: whatever the ranks do to its name meanwhile, this stays the file."""

    handle: int
    name: str

    @property
    def path(self) -> Path:
        """A path that leads to the open file, for as long as it is open."""
        return Path(f"/dev/fd/{self.handle}")

    @property
    def size(self) -> int:
        """Bytes that whoever reads it to its end gets, holes included."""
        return os.fstat(self.handle).st_size

    def read(self) -> bytes:
        """All of it; raises `ReportTooLarge`."""
        if self.size > MAX_READ:
            text = f"{self.name} is larger than {bytes_text(MAX_READ)}, the most that is read"
            raise ReportTooLarge(text)
        return os.pread(self.handle, MAX_READ, 0)


@contextmanager
def opened(folder: Path, path: str) -> Iterator[Announced]:
    """The plain file at `path` (absolute, or below `folder`), which is removed afterwards.

    Every step is taken from the folder before it and follows no link, so that the ranks, who
    may rename things meanwhile, can lead nowhere else. Raises `ReportOutside`.
    """
    *above, name = _steps(folder, path)
    places = [os.open(folder, FOLDER)]
    try:
        for step in above:
            places.append(_open(step, FOLDER, places[-1], path))
        handle = _open(name, FILE, places[-1], path)
        places.append(handle)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _outside(path)
        yield Announced(handle, path)
        with suppress(OSError):  # the ranks may have taken it away meanwhile
            os.unlink(name, dir_fd=places[-2])
    finally:
        for place in places:
            os.close(place)


def _steps(folder: Path, path: str) -> tuple[str, ...]:
    whole = folder / path
    if not whole.is_relative_to(folder) or ".." in whole.parts or whole == folder:
        raise _outside(path)
    return whole.relative_to(folder).parts


def _open(step: str, flags: int, place: int, path: str) -> int:
    try:
        return os.open(step, flags, dir_fd=place)
    except (OSError, ValueError) as fault:
        raise _outside(path) from fault


def _outside(path: str) -> ReportOutside:
    return ReportOutside(f"a rank announced {path}, which is not a regular file in its folder")
