"""What the command line of the sandbox shows and what it hides."""

from itertools import pairwise
from pathlib import Path

import pytest

from workers.sandbox.bubblewrap import PROJECT, command
from workers.sandbox.room import Room

STATE = Path("/var/lib/stageflow")
FOLDER = STATE / "runs" / "3" / "attempt-1"
SHOWN = (FOLDER / "job.json", FOLDER / "definition")
ROOM = Room(FOLDER, STATE, SHOWN)
WRITABLE = ("--bind", "--tmpfs", "--dev-bind", "--dev-bind-try", "--bind-try")


def pairs(room: Room = ROOM, gpus: bool = False) -> list[tuple[str, str]]:
    return list(pairwise(command("/usr/bin/bwrap", room, ["launcher"], gpus)))


@pytest.mark.parametrize("name", ["pid", "net", "ipc", "uts"])
def test_it_has_namespaces_of_its_own_and_dies_with_the_agent(name: str):
    words = command("/usr/bin/bwrap", ROOM, ["launcher"])
    assert words[0] == "/usr/bin/bwrap"
    assert {f"--unshare-{name}", "--die-with-parent"} <= set(words)
    assert words[-2:] == ["--", "launcher"]


def test_one_folder_of_the_disk_can_be_written():
    binds = [place for option, place in pairs() if option in WRITABLE]
    assert set(binds) == {str(FOLDER / "work"), str(STATE), "/tmp", "/dev/shm"}
    read_only = [place for option, place in pairs() if option == "--remount-ro"]
    assert read_only == [str(STATE), "/dev", "/"]


def test_of_the_project_only_what_ranks_import_is_seen():
    seen = [place for option, place in pairs() if option == "--ro-bind"]
    assert str(PROJECT / "workers") in seen
    assert str(PROJECT) not in seen
    assert str(PROJECT / "app") not in seen
    assert str(Path.home()) not in seen


@pytest.mark.parametrize("state", ["/var/lib/stageflow", "/tmp/state", "/usr/local/state"])
def test_the_state_directory_is_hidden_before_the_runs_own_part_is_shown(state: str):
    folder = Path(state) / "runs" / "3" / "attempt-1"
    words = command("bwrap", Room(folder, Path(state), (folder / "job.json",)), [])
    hidden = words.index(state, words.index("/usr"))
    assert words[hidden - 1] == "--tmpfs"
    assert words.index("/usr") < hidden
    assert hidden < words.index(str(folder / "job.json"))
    assert hidden < words.index(str(folder / "work"))


@pytest.mark.parametrize("shared", ["/mnt/share", "/usr/local/share", "/var/lib"])
def test_what_hosts_share_is_hidden_wherever_it_lies(shared: str):
    words = command("bwrap", Room(FOLDER, STATE, SHOWN, shared=Path(shared)), [])
    hidden = words.index(shared)
    assert words[hidden - 1] == "--tmpfs"
    assert not shared.startswith("/usr") or words.index("/usr") < hidden
    assert hidden < words.index(str(FOLDER / "work"))
    assert words[words.index(shared, hidden + 1) - 1] == "--remount-ro"


def test_gpus_are_seen_by_those_who_use_them():
    assert ("--ro-bind-try", "/sys") in pairs(gpus=True)
    assert ("--ro-bind-try", "/sys") not in pairs()
