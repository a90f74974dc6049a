"""Faults of the supervisor's own work, as the end that they bring."""

import errno
import shutil
import traceback
from pathlib import Path

from backend.errors import StageflowError, first_line
from backend.runs.run import RunError
from backend.runs.states import RunState
from workers.supervisor.state.ending import Ending
from workers.supervisor.state.failure import FREE_SPACE


def failed(fault: BaseException, folder: Path) -> Ending:
    """The end that a fault in the supervisor's own work brings: a full disk, a report that
    cannot be read, a process that cannot be started."""
    return Ending(RunState.FAILED, _error(fault, folder))


def _error(fault: BaseException, folder: Path) -> RunError:
    if _is_full(fault):
        return _disk_full(folder, fault)
    if isinstance(fault, StageflowError):
        return RunError(type(fault).__name__, str(fault), fault.advice)
    advice = "The agent could not supervise the run; its log has the traceback."
    cause = getattr(fault, "orig", None)
    if cause is not None:  # the words of SQLAlchemy are a statement with its values
        return RunError("AgentFault", f"the database refused a value: {first_line(cause)}", advice)
    detail = "".join(traceback.format_exception(fault))
    return RunError("AgentFault", f"{type(fault).__name__}: {fault}", advice, detail)


def _is_full(fault: BaseException) -> bool:
    """Does this fault, or one that caused it, say that there is no room left?"""
    while True:
        if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if type(fault).__name__ == "StorageFull":
            return True
        cause = fault.__cause__ or fault.__context__
        if cause is None:
            return False
        fault = cause


def _disk_full(folder: Path, fault: BaseException) -> RunError:
    """The run's error, with the path and the bytes that are free there."""
    place = folder if folder.exists() else folder.parent
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    return RunError(
        "DiskFull", f"no space left to write {place} ({free:,} bytes free): {fault}", FREE_SPACE
    )
