"""Files become a checkpoint when all of them are there, and only then."""

import hashlib
import time
from pathlib import Path

import pytest

from backend.hashing import FileGrew
from backend.runs.attempts.checkpoints import CheckpointFile, Mark, stage_file
from backend.runs.events import Saved
from workers.sandbox.limits import Limits
from workers.supervisor.reporting.announced import ReportOutside
from workers.supervisor.reporting.checkpoint_copy import CheckpointCopier
from workers.supervisor.reporting.handed_over import DiskFull, HandedOver
from workers.supervisor.spool.entries import CopiedCheckpoint

LIMITS = Limits(60, 1 << 30, 100, 1 << 20, disk=100, files=20)


def saved(folder: Path, name: str, text: bytes, step: int = 7, num_files: int = 2) -> Saved:
    path = folder / "checkpoints" / str(step) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    return Saved(0, 1, 64, step, str(path), num_files)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def copier(work: Path, tmp_path: Path) -> CheckpointCopier:
    place = tmp_path / "kept"
    return CheckpointCopier(work, lambda step: place / f"1-{step}", HandedOver(LIMITS))


def heard(copier: CheckpointCopier, num: int) -> list[CopiedCheckpoint]:
    """What becomes whole within a bounded time, up to `num`."""
    found: list[CopiedCheckpoint] = []
    deadline = time.monotonic() + 30
    while len(found) < num and time.monotonic() < deadline:
        found += copier.copied()
        copier.check()
        time.sleep(0.01)
    return found


def settled(copier: CheckpointCopier) -> None:
    while not copier.is_idle:  # up to the test's own limit
        time.sleep(0.01)


def test_it_is_whole_with_its_last_file(copier: CheckpointCopier, work: Path, tmp_path: Path):
    copier.copy(saved(work, "b", b"bb"))
    copier.copy(saved(work, "b", b"b", step=8))
    settled(copier)
    assert not copier.copied()
    copier.copy(saved(work, "a", b"a"))
    (first,) = heard(copier, 1)
    assert first.mark == Mark(1, 64, 7)
    assert first.files == tuple(
        CheckpointFile(name, len(text), hashlib.sha256(text).hexdigest())
        for name, text in (("a", b"a"), ("b", b"bb"))
    )
    assert (tmp_path / "kept/1-7/b").read_bytes() == b"bb"
    assert not list(work.glob("checkpoints/*/*"))
    copier.copy(saved(work, "a", b"a", step=8))
    (second,) = heard(copier, 1)
    assert second.mark.step == 8


def test_what_never_becomes_whole_goes_when_a_later_one_is(
    copier: CheckpointCopier, work: Path, tmp_path: Path
):
    """A rank of another host heard of step 7 too late."""
    copier.copy(saved(work, "a", b"a"))
    for name in ("a", "b"):
        copier.copy(saved(work, name, b"x", step=9))
    copier.copy(saved(work, "a", b"a", step=11))
    assert [found.mark.step for found in heard(copier, 1)] == [9]
    settled(copier)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["1-11", "1-9"]
    copier.close()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["1-9"]


def test_a_stage_counts_once_whoever_saved_it(copier: CheckpointCopier, work: Path, tmp_path: Path):
    one, other = stage_file(0, 0), stage_file(1, 0)
    copier.copy(saved(work, one, b"a"))
    copier.copy(saved(work, f"host-1-{one}", b"a"))
    settled(copier)
    assert not copier.copied()
    copier.copy(saved(work, f"host-1-{other}", b"b"))
    copier.copy(saved(work, other, b"b"))
    (found,) = heard(copier, 1)
    assert [file.name for file in found.files] == [one, f"host-1-{other}"]
    settled(copier)
    copier.close()
    assert sorted(path.name for path in (tmp_path / "kept/1-7").iterdir()) == sorted(
        [one, f"host-1-{other}"]
    )
    assert not list(work.glob("checkpoints/*/*"))


def test_a_file_outside_of_the_ranks_folder_is_refused(
    copier: CheckpointCopier, work: Path, tmp_path: Path
):
    (tmp_path / "secret").write_text("x")
    copier.copy(Saved(0, 0, 0, 1, str(tmp_path / "secret"), 1))
    with pytest.raises(ReportOutside):
        heard(copier, 1)
    assert not (tmp_path / "kept/1-1/secret").exists()


class Growing(HandedOver):
    """The rank writes on as soon as its file is counted."""

    file: Path

    def add(self, num_bytes: int, num_files: int = 1) -> None:
        super().add(num_bytes, num_files)
        self.file.write_bytes(bytes(10 * num_bytes))


def test_a_file_that_grows_while_it_is_copied_is_refused(work: Path, tmp_path: Path):
    counts = Growing(LIMITS)
    copier = CheckpointCopier(work, lambda step: tmp_path / f"1-{step}", counts)
    event = saved(work, stage_file(0, 0), bytes(20), num_files=1)
    counts.file = Path(event.path)
    copier.copy(event)
    with pytest.raises(FileGrew, match="had 20 bytes"):
        heard(copier, 1)
    copier.close()
    assert not (tmp_path / "1-7").exists()


def test_a_disk_without_room_is_told(copier: CheckpointCopier, work: Path, tmp_path: Path):
    (tmp_path / "kept").write_text("no folder can be made here")
    copier.copy(saved(work, "a", b"a"))
    with pytest.raises(OSError, match="kept"):
        heard(copier, 1)


def test_whole_checkpoints_and_those_that_are_removed_count_no_more(
    copier: CheckpointCopier, work: Path
) -> None:
    for step in range(20):
        for name in ("stage-0", "stage-1"):
            copier.copy(saved(work, name, bytes(40), step))
        settled(copier)
    assert len(copier.copied()) == 20


def test_checkpoints_that_never_become_whole_are_bounded(
    copier: CheckpointCopier, work: Path
) -> None:
    for step in range(3):
        copier.copy(saved(work, "stage-0", bytes(40), step))
    settled(copier)
    with pytest.raises(DiskFull, match="handed over 120 bytes; it may keep 100 bytes"):
        copier.check()
