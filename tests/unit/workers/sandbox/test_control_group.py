"""Where a control group lies and what bounds it, in folders laid out as the kernel lays them."""

import threading
from pathlib import Path

import pytest

from workers.sandbox.control_group import KERNEL, OWN_PROCESSES, ControlGroup
from workers.sandbox.limits import Limits

MIB = 2**20
LIMITS = Limits(60.0, 256 * MIB, 64, MIB, MIB, 10)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new group has its files at once, as from the kernel."""
    made = Path.mkdir

    def mkdir(self: Path, *given: object, **named: object) -> None:
        made(self, *given, **named)
        if self.name.startswith("stageflow-"):
            names = ("memory.max", "memory.swap.max", "pids.max", "memory.limit_in_bytes")
            for name in names:
                (self / name).touch()

    monkeypatch.setattr(Path, "mkdir", mkdir)


def group(tmp_path: Path, lines: str) -> ControlGroup | None:
    (tmp_path / "own").write_text(lines)
    return ControlGroup.of(LIMITS, tmp_path, tmp_path / "own")


@pytest.mark.usefixtures("files")
def test_of_version_2_it_lies_beside_the_agents_own(tmp_path: Path):
    place = tmp_path / "system.slice" / "stageflow.service"
    (place / "agent").mkdir(parents=True)
    (place / "cgroup.subtree_control").touch()
    made = group(tmp_path, "0::/system.slice/stageflow.service/agent\n")
    assert made is not None
    (folder,) = place.glob("stageflow-*")
    assert (place / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (folder / "memory.max").read_text() == str(256 * MIB + KERNEL)
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "pids.max").read_text() == str(64 + OWN_PROCESSES)
    assert made.entering == f"echo $$ >{folder}/cgroup.procs;"
    assert not made.is_out_of_memory
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n")
    assert made.is_out_of_memory


@pytest.mark.usefixtures("files")
def test_of_version_1_it_lies_below_the_agents_own(tmp_path: Path):
    for controller in ("memory", "pids"):
        (tmp_path / controller / "user").mkdir(parents=True)
    made = group(tmp_path, "9:name=systemd:/\n8:pids:/user\n4:memory:/user\n0::/\n")
    assert made is not None
    (of_memory,) = (tmp_path / "memory" / "user").glob("stageflow-*")
    (of_tasks,) = (tmp_path / "pids" / "user").glob("stageflow-*")
    assert (of_memory / "memory.limit_in_bytes").read_text() == str(256 * MIB + KERNEL)
    assert (of_tasks / "pids.max").read_text() == str(64 + OWN_PROCESSES)
    (of_memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    assert made.is_out_of_memory


@pytest.mark.parametrize("lines", ["", "0::/\n", "4:memory:/user\n0::/\n", "0::/a/b\n"])
def test_where_none_can_be_made_there_is_none(tmp_path: Path, lines: str):
    (tmp_path / "a").mkdir()
    assert group(tmp_path, lines) is None
    assert not list(tmp_path.rglob("stageflow-*"))


def test_it_goes_once_its_last_process_has_vanished(tmp_path: Path):
    """A folder with something in it stands for a group with a process: neither can be removed."""
    folders = (tmp_path / "memory", tmp_path / "pids")
    for folder in folders:
        folder.mkdir()
        (folder / "process").touch()
        threading.Timer(2.0, (folder / "process").unlink).start()
    ControlGroup(folders).close()
    assert not any(folder.exists() for folder in folders)
