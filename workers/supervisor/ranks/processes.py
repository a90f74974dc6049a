"""The processes of an attempt, grandchildren included: find them, end them."""

import os
import signal
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from workers.sandbox.cell import GRACE
from workers.sandbox.launcher import PATIENCE
from workers.sandbox.room import work_folder


def of_attempt(folder: Path, sessions: Collection[int]) -> list[psutil.Process]:
    """Living processes that sit in one of `sessions` or have the HOME of this attempt's ranks.

    A grandchild may leave its session, but it keeps the environment that it was born with.
    """
    home = str(work_folder(folder))
    return [p for p in psutil.process_iter() if _belongs(p, home, sessions)]


def _belongs(process: psutil.Process, home: str, sessions: Collection[int]) -> bool:
    try:
        if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return os.getsid(process.pid) in sessions or process.environ().get("HOME") == home
    except (psutil.Error, OSError):
        return False


def end(folder: Path, sessions: Collection[int], grace: float = GRACE) -> list[int]:
    """End every process of the attempt: SIGTERM, `grace` seconds, then SIGKILL until none
    is left (at most `PATIENCE` seconds). Return the pids that would not go."""
    _signal(of_attempt(folder, sessions), signal.SIGTERM)
    if _gone_within(grace, folder, sessions):
        return []
    deadline = time.monotonic() + PATIENCE
    while left := of_attempt(folder, sessions):
        if time.monotonic() > deadline:
            return [process.pid for process in left]
        _signal(left, signal.SIGKILL)
        time.sleep(0.02)
    return []


def _gone_within(seconds: float, folder: Path, sessions: Collection[int]) -> bool:
    deadline = time.monotonic() + seconds
    while of_attempt(folder, sessions):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)
