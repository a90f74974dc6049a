"""What a run uses, counted."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workers.sandbox.usage import Files, Usage, of_folder, of_processes

PARENT = """
import subprocess, sys
child = "import threading, time, sys; {work}; print(flush=True); time.sleep(600)"
subprocess.run([sys.executable, "-c", child])
"""


@pytest.fixture
def family() -> Iterator[Callable[[str], int]]:
    """A process with a child that does some work; the parent's pid."""
    started: list[subprocess.Popen[bytes]] = []

    def start(work: str) -> int:
        command = [sys.executable, "-c", PARENT.format(work=work)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process.pid

    yield start
    for process in started:
        os.killpg(process.pid, 9)
        process.communicate()


def test_threads_count_as_processes_do(family):
    assert of_processes(family("pass")).tasks == 1
    work = "[threading.Thread(target=time.sleep, args=(600,), daemon=True).start() for _ in 'abc']"
    assert of_processes(family(work)).tasks == 4


@pytest.mark.parametrize(
    "work",
    [
        "held = bytearray(b'x') * (64 << 20)",
        "m = __import__('mmap').mmap(-1, 64 << 20); m[:] = bytes(64 << 20)",
    ],
)
def test_memory_is_counted_whether_shared_or_not(family, work: str):
    assert 64 << 20 <= of_processes(family(work)).memory < 200 << 20


def test_a_process_that_is_gone_uses_nothing():
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert of_processes(ended.pid) == Usage()


def test_files_are_counted_with_their_holes_and_links_are_not_followed(tmp_path: Path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "five").write_bytes(b"12345")
    with (tmp_path / "hole").open("wb") as hole:
        hole.truncate(10**9)
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    found = of_folder(tmp_path, most=100)
    assert found.count == 5
    assert 10**9 + 5 <= found.size < 10**9 + 10**6


def test_counting_stops_at_the_limit(tmp_path: Path):
    for number in range(50):
        (tmp_path / str(number)).touch()
    assert of_folder(tmp_path, most=10).count == 11
    assert of_folder(tmp_path / "missing", most=10) == Files()
