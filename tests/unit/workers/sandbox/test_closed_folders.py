"""Folders that ranks close to an agent that is not root, as whom they run then."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.sandbox.guard import Guard
from workers.sandbox.limits import Limits
from workers.supervisor.setup.removal import remove

LIMITS = Limits(60, 1 << 40, 1 << 20, 1 << 40, disk=1 << 20, files=1000)
OTHER_USER = 12345


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder of this user's, who is not root."""
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        if is_root:
            os.chown(folder, OTHER_USER, OTHER_USER)
            os.seteuid(OTHER_USER)
        (Path(folder) / "work").mkdir()
        try:
            yield Path(folder) / "work"
        finally:
            if is_root:
                os.seteuid(0)


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o400])
@pytest.mark.parametrize("name", [".", "inside", "inside/deeper"])
def test_a_closed_folder_is_a_breach_and_is_removed(work: Path, name: str, mode: int) -> None:
    closed = work / name
    closed.mkdir(parents=True, exist_ok=True)
    (closed / "large").write_bytes(bytes(2 << 20))
    closed.chmod(mode)
    error = Guard(LIMITS, 0, work).error(time.monotonic() + 10)
    remove(work)
    assert error is not None
    assert error.kind == "TooManyFiles"
    assert "closed a folder" in error.message
    assert not work.exists()
