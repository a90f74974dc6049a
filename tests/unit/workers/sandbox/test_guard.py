"""Limits that hold for all attempts at a run together."""

import os
import time
from pathlib import Path

from workers.sandbox.guard import Guard
from workers.sandbox.limits import Limits
from workers.supervisor.setup.removal import remove

LIMITS = Limits(60, 1 << 40, 1 << 20, 1 << 40, 1 << 40, 1000)


def test_the_time_of_earlier_attempts_counts(tmp_path: Path) -> None:
    fresh = Guard(LIMITS, 0, tmp_path)
    assert fresh.error(time.monotonic()) is None
    late = Guard(Limits(60, 1 << 40, 1 << 20, 1 << 40, 1 << 40, 1000, spent=60), 0, tmp_path)
    error = late.error(time.monotonic() + 0.001)
    assert error is not None
    assert error.kind == "OutOfTime"


def test_folders_too_deep_to_look_into_are_a_breach(tmp_path: Path) -> None:
    tmp_path = tmp_path / "work"
    tmp_path.mkdir()
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2_000):  # of 9 bytes each: far beyond what a path may have
        os.mkdir("x" * 8, dir_fd=place)
        below = os.open("x" * 8, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    error = Guard(LIMITS, 0, tmp_path).error(time.monotonic() + 10)
    remove(tmp_path)  # pytest could not
    assert error is not None
    assert error.kind == "TooManyFiles"
    assert "deep" in error.message
