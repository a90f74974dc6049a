"""What a dead agent left is ended; what a living one holds, or a stranger, is not."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.codec import to_json
from workers.pid import Pid
from workers.sandbox.room import work_folder
from workers.supervisor.ranks import orphans, processes
from workers.supervisor.ranks.orphans import StartedProcesses
from workers.supervisor.setup.preparation import FolderInUse, clear

DEAD = Pid(os.getpid(), 1.0)
"""This process's number with another's start: an agent whose number was used again."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "7" / "attempt-1"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def sleeper(folder: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(home: Path = folder) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
        process = subprocess.Popen(
            command,
            env={"HOME": str(work_folder(home))},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_the_ranks_of_a_dead_agent_are_ended(folder: Path, sleeper):
    rank = sleeper()
    orphans.remember(folder, DEAD, (Pid.of(rank.pid),))
    assert orphans.reap(folder.parents[1]) == [folder]
    assert rank.wait(120) != 0
    assert not (folder / orphans.FILE).exists()


def test_the_ranks_of_a_living_agent_are_left_alone(folder: Path, sleeper):
    rank = sleeper()
    orphans.remember(folder, Pid.of(os.getpid()), (Pid.of(rank.pid),))
    assert orphans.reap(folder.parents[1]) == []
    assert rank.poll() is None


def test_a_stranger_with_a_ranks_old_number_is_left_alone(folder: Path, tmp_path: Path, sleeper):
    stranger = sleeper(home=tmp_path)
    orphans.remember(folder, DEAD, (Pid(stranger.pid, 1.0),))
    orphans.reap(folder.parents[1])
    assert stranger.poll() is None


def test_the_record_of_another_host_is_left_alone(folder: Path, sleeper):
    """Its agent's number is nobody's here, or somebody else's: neither says that it is dead."""
    stranger = sleeper(home=folder.parent)
    record = StartedProcesses(DEAD, (Pid.of(stranger.pid),), "another-host")
    (folder / orphans.FILE).write_bytes(to_json(StartedProcesses, record))
    assert orphans.reap(folder.parents[1]) == []
    assert stranger.poll() is None
    assert orphans.holder(folder) == "another-host"
    with pytest.raises(FolderInUse, match="in use by an agent on another-host") as caught:
        clear(folder)
    assert "STAGEFLOW_SHARED" in caught.value.advice
    assert (folder / orphans.FILE).exists()


def test_a_record_of_an_older_version_is_this_hosts(folder: Path):
    old = {"agent": {"number": DEAD.number, "start": DEAD.start}, "ranks": []}
    (folder / orphans.FILE).write_text(json.dumps(old))
    assert orphans.holder(folder) is None
    assert orphans.reap(folder.parents[1]) == [folder]


def test_a_file_that_was_cut_off_still_leads_to_the_processes(folder: Path, sleeper):
    rank = sleeper()
    (folder / orphans.FILE).write_text('{"agent": {"num')
    orphans.reap(folder.parents[1])
    assert rank.wait(120) != 0


def test_an_ended_process_is_not_alive(sleeper):
    process = sleeper()
    pid = Pid.of(process.pid)
    assert pid.is_alive
    process.kill()
    process.wait()
    assert not pid.is_alive


def test_nothing_is_left_to_end(folder: Path):
    assert processes.end(folder, ()) == []
