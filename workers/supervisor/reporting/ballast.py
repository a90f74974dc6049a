"""Room on the disk that an attempt holds back, so that its end can be written on a full one."""

import os
from contextlib import suppress
from pathlib import Path

FILE = "ballast"
NUM_BYTES = 1024**2


def hold_back(folder: Path) -> None:
    """Take the room; raises `OSError` where even that finds no room."""
    (folder / FILE).write_bytes(os.urandom(NUM_BYTES))  # zeros may take no room


def let_go_of_half(folder: Path) -> None:
    """Give half of the room back, for the last reports: they must not take what the end needs."""
    with suppress(OSError):
        os.truncate(folder / FILE, NUM_BYTES // 2)


def let_go(folder: Path) -> None:
    """Give back what is left of the room, where there is any: the end of the run comes next,
    whatever its folder has become."""
    with suppress(OSError):
        (folder / FILE).unlink()
