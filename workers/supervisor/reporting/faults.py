"""Faults of the supervisor's own work, as the end that they bring."""

import errno
import os
import shutil
import traceback
from collections.abc import Container, Iterator
from pathlib import Path

from backend.errors import StageflowError, first_line
from backend.runs.run import RunError
from backend.runs.states import RunState
from backend.storage.errors import FolderUnusable
from backend.units import bytes_text
from workers.supervisor.state.ending import Ending
from workers.supervisor.state.failure import FREE_SPACE

OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
UNUSABLE = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST),
    *(errno.EIO, errno.ESTALE, errno.ENOTCONN),
)
"""What a folder of ours says that cannot be written, or whose disk does not answer."""
MORE_FILES = (
    "Raise the limit of open files where the node agent is started (`ulimit -n`, LimitNOFILE= of "
    "a service), and run it again."
)


def failed(fault: BaseException, folder: Path) -> Ending:
    """The end that a fault in the supervisor's own work brings: a full disk, a report that
    cannot be read, a process that cannot be started."""
    return Ending(RunState.FAILED, _error(fault, folder))


def _error(fault: BaseException, folder: Path) -> RunError:
    if _is_full(fault):
        return _disk_full(folder, fault)
    if _says(fault, OUT_OF_DESCRIPTORS):
        return RunError(
            "OutOfDescriptors", f"the agent cannot open more files: {fault}", MORE_FILES
        )
    if isinstance(fault, StageflowError):
        return RunError(type(fault).__name__, str(fault), fault.advice)
    if isinstance(fault, OSError) and fault.errno in UNUSABLE and fault.filename:
        text = f"{os.fsdecode(fault.filename)}: {fault.strerror}"
        return RunError("FolderUnusable", text, FolderUnusable.advice)
    advice = "The agent could not supervise the run; its log has the traceback."
    cause = getattr(fault, "orig", None)
    if cause is not None:  # the words of SQLAlchemy are a statement with its values
        return RunError("AgentFault", f"the database refused a value: {first_line(cause)}", advice)
    detail = "".join(traceback.format_exception(fault))
    return RunError("AgentFault", f"{type(fault).__name__}: {fault}", advice, detail)


def _is_full(fault: BaseException) -> bool:
    """Is there no room left, on the disk of a file or of the database?"""
    return _says(fault, (errno.ENOSPC, errno.EDQUOT)) or any(
        type(each).__name__ == "StorageFull" for each in _causes(fault)
    )


def _says(fault: BaseException, numbers: Container[int | None]) -> bool:
    """Has this fault, or one that caused it, a number of these of the system?"""
    return any(isinstance(each, OSError) and each.errno in numbers for each in _causes(fault))


def _causes(fault: BaseException | None) -> Iterator[BaseException]:
    """This one first."""
    while fault is not None:
        yield fault
        fault = fault.__cause__ or fault.__context__


def _disk_full(folder: Path, fault: BaseException) -> RunError:
    """The run's error, with the path and the bytes that are free there."""
    place = folder if folder.exists() else folder.parent
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    return RunError(
        "DiskFull", f"no space left to write {place} ({bytes_text(free)} free): {fault}", FREE_SPACE
    )
