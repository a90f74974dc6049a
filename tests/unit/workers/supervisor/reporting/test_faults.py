"""A fault of the supervisor's own, told for people."""

import errno
import os
from pathlib import Path

import pytest

from backend.errors import InvalidInput
from backend.runs.attempts.fence import Fence
from backend.runs.run import RunError
from backend.storage.errors import StorageFull
from workers.supervisor.reporting.ballast import FILE, NUM_BYTES, hold_back, let_go, let_go_of_half
from workers.supervisor.reporting.faults import failed
from workers.supervisor.spool.spool import Spool


def told(fault: BaseException, folder: Path) -> RunError:
    error = failed(fault, folder).error
    assert error is not None
    return error


def test_a_full_disk_is_named_with_path_and_free_bytes(tmp_path: Path):
    error = told(OSError(errno.ENOSPC, "No space left on device"), tmp_path)
    assert error.kind == "DiskFull"
    assert str(tmp_path) in error.message
    assert " free)" in error.message


def test_a_full_disk_is_found_behind_another_fault(tmp_path: Path):
    outer = RuntimeError("could not write")
    outer.__cause__ = StorageFull("the database's disk")
    assert told(outer, tmp_path / "not" / "yet" / "there").kind == "DiskFull"


def test_an_agent_that_can_open_no_more_files_says_so(tmp_path: Path):
    outer = RuntimeError("no rank was started")
    outer.__cause__ = OSError(errno.EMFILE, "Too many open files")
    error = told(outer, tmp_path)
    assert error.kind == "OutOfDescriptors"
    assert "ulimit -n" in error.advice


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOTDIR, errno.EIO])
def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path, code: int):
    error = told(OSError(code, os.strerror(code), str(tmp_path / "checkpoints")), tmp_path)
    assert error.kind == "FolderUnusable"
    assert str(tmp_path / "checkpoints") in error.message
    assert error.advice
    assert not error.detail


def test_an_end_is_written_where_the_runs_folder_is_none(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    let_go(tmp_path / "file")
    Spool(tmp_path / "file" / "spool.sqlite", Fence(1, 1, "f" * 32)).remove()


def test_the_last_reports_leave_room_for_the_end(tmp_path: Path):
    hold_back(tmp_path)
    let_go_of_half(tmp_path)
    assert (tmp_path / FILE).stat().st_size == NUM_BYTES // 2
    let_go(tmp_path)
    assert not list(tmp_path.iterdir())
    let_go_of_half(tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_error_for_people_keeps_its_words(tmp_path: Path):
    error = told(InvalidInput("5 is too many", "Take 4."), tmp_path)
    assert error == RunError("InvalidInput", "5 is too many", "Take 4.")


def test_anything_else_keeps_its_trace(tmp_path: Path):
    try:
        raise ZeroDivisionError("division by zero")
    except ZeroDivisionError as fault:
        error = told(fault, tmp_path)
    assert error.kind == "AgentFault"
    assert "test_faults.py" in error.detail
