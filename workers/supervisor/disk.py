"""A full disk: told apart from other faults, and named with its numbers."""

import errno
import os
import shutil
from pathlib import Path

from backend.runs.run import RunError
from workers.supervisor.verdict import FREE_SPACE

BALLAST = "ballast"
BALLAST_BYTES = 1024**2
"""Room that an attempt holds back so that its end can be written when the disk is full."""


def is_full(fault: BaseException) -> bool:
    """Does this fault, or one that caused it, say that there is no room left?"""
    while True:
        if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if type(fault).__name__ == "StorageFull":
            return True
        cause = fault.__cause__ or fault.__context__
        if cause is None:
            return False
        fault = cause


def error(folder: Path, fault: BaseException) -> RunError:
    """The run's error, with the path and the bytes that are free there."""
    place = folder if folder.exists() else folder.parent
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    return RunError(
        "DiskFull", f"no space left to write {place} ({free:,} bytes free): {fault}", FREE_SPACE
    )


def hold_back(folder: Path) -> None:
    """Take the ballast on board; raises `OSError` where even that finds no room."""
    (folder / BALLAST).write_bytes(os.urandom(BALLAST_BYTES))  # zeros may take no room


def let_go(folder: Path) -> None:
    """Throw the ballast off."""
    (folder / BALLAST).unlink(missing_ok=True)
