"""A disk that is really full: a small file system of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

MOUNT = "mount -t tmpfs -o size=2m stageflow"


def in_small_disk(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run `command` where `folder` is a disk of 2 MiB, in a mount namespace of its own."""
    line = f'{MOUNT} "{folder}" && exec "$@"'
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", line, "sh", *command],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=False,
    )


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path):
    if in_small_disk(tmp_path, ["true"]).returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk of their own")
    script = Path(__file__).with_name("fill_disk.py")
    done = in_small_disk(tmp_path, [sys.executable, str(script), str(tmp_path)])
    assert done.returncode == 0, done.stderr
    first, second, last = done.stdout.splitlines()
    assert first.startswith("full: Free some space")
    assert second == first
    assert last == "mended"
