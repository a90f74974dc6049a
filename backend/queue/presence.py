"""Whether the agent of a home's node lives on this machine: known at once, by a file lock.

The kernel takes the lock from a process that ends, however it ends; a lease would take its time.
"""

import fcntl
import os
import time
from contextlib import closing
from pathlib import Path
from typing import IO
from urllib.parse import quote

from backend.errors import StageflowError
from backend.settings import Settings

LOOKING = 1.0
"""Seconds to try: who only looks holds the lock for an instant."""


class AgentRunning(StageflowError):
    """A second agent of one node was to be started from the same home."""

    advice = "Stop the other one, or give this one a name of its own: STAGEFLOW_NODE."


class Presence:
    """Held from its making to `close` or the end of the process. Raises `AgentRunning`."""

    def __init__(self, settings: Settings) -> None:
        self._file = _open(settings)
        deadline = time.monotonic() + LOOKING
        while not _locked(self._file):
            if time.monotonic() < deadline:
                time.sleep(LOOKING / 50)
                continue
            self._file.close()
            raise AgentRunning(f"an agent of node {settings.node} runs in {settings.home} already")

    def close(self) -> None:
        """Let another agent of the node start."""
        self._file.close()


def is_held(settings: Settings) -> bool:
    """Does an agent of this home's node live on this machine?"""
    if not _place(settings).exists():
        return False
    with closing(_open(settings)) as file:
        return not _locked(file)


def _place(settings: Settings) -> Path:
    return settings.home / "agents" / f"{quote(settings.node, safe='')}.lock"


def _open(settings: Settings) -> IO[str]:
    _place(settings).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.fdopen(os.open(_place(settings), os.O_RDWR | os.O_CREAT, 0o600), "r+")


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
