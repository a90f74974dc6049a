"""A fault of the supervisor's own, told for people."""

import errno
from pathlib import Path

from backend.errors import InvalidInput
from backend.runs.run import RunError
from backend.storage.errors import StorageFull
from workers.supervisor.reporting.faults import failed


def told(fault: BaseException, folder: Path) -> RunError:
    error = failed(fault, folder).error
    assert error is not None
    return error


def test_a_full_disk_is_named_with_path_and_free_bytes(tmp_path: Path):
    error = told(OSError(errno.ENOSPC, "No space left on device"), tmp_path)
    assert error.kind == "DiskFull"
    assert str(tmp_path) in error.message
    assert "bytes free" in error.message


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
