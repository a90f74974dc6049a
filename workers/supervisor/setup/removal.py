"""Folders that ranks have filled, removed whatever is in them."""

import os
import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
ALL = 0o700


def remove(folder: Path) -> None:
    """Of any depth: a folder in a folder is moved up, so that two are open at once. One that is
    closed to its own user is opened. Nobody else writes there any more. Raises `OSError`."""
    with suppress(OSError, RecursionError):
        shutil.rmtree(folder)
    if not folder.exists():
        return
    top = _opened(folder)
    numbers = count()
    try:
        while names := os.listdir(top):
            for name in names:
                _remove(top, name, numbers)
    finally:
        os.close(top)
    folder.rmdir()


def _remove(top: int, name: str, numbers: "count[int]") -> None:
    try:
        below = _opened(name, top)
    except NotADirectoryError:
        os.unlink(name, dir_fd=top)
        return
    try:
        for inner in os.listdir(below):
            _lift(below, inner, top, numbers)
    finally:
        os.close(below)
    os.rmdir(name, dir_fd=top)


def _opened(name: Path | str, place: int | None = None) -> int:
    """The folder's handle. Raises `NotADirectoryError`, for a link too, and `OSError`."""
    try:
        handle = os.open(name, FOLDER, dir_fd=place)
    except PermissionError:  # no link: that would be no folder
        os.chmod(name, ALL, dir_fd=place)
        handle = os.open(name, FOLDER, dir_fd=place)
    os.fchmod(handle, ALL)
    return handle


def _lift(below: int, name: str, top: int, numbers: "count[int]") -> None:
    """A folder up to the top, under a name that none has there; anything else away."""
    try:
        os.close(_opened(name, below))
    except NotADirectoryError:
        os.unlink(name, dir_fd=below)
        return
    while True:
        new = f".removed-{next(numbers)}"
        try:
            os.stat(new, dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(name, new, src_dir_fd=below, dst_dir_fd=top)
            return
