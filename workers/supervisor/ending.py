"""How an attempt ends: the final state, and the error for people."""

import traceback
from dataclasses import dataclass
from pathlib import Path

from backend.errors import StageflowError
from backend.runs.run import RunError
from backend.runs.states import RunState
from workers.supervisor import disk


@dataclass(frozen=True, slots=True)
class Ending:
    """`error` is given for a failed run alone."""

    state: RunState
    error: RunError | None = None


SUCCEEDED = Ending(RunState.SUCCEEDED)
CANCELLED = Ending(RunState.CANCELLED)
STOPPED = Ending(
    RunState.FAILED,
    RunError(
        "AgentStopped",
        "the node agent was stopped while the run was going on",
        "Start the agent again (`stageflow up`) and launch the run again.",
    ),
)

CUT_OFF = Ending(
    RunState.FAILED,
    RunError(
        "DatabaseUnreachable",
        "the database was away for so long that the agent could not keep its lease",
        "Look at the database and the way to it; what was told meanwhile is written since.",
    ),
)

HELD_UP = Ending(
    RunState.FAILED,
    RunError(
        "AgentHeldUp",
        "a write of the agent took so long that it could not keep its lease",
        "Look at the database and at the disks of this machine; a longer STAGEFLOW_LEASE bears "
        "more.",
    ),
)


def failed(fault: BaseException, folder: Path) -> Ending:
    """The end that a fault in the supervisor's own work brings: a full disk, a report that
    cannot be read, a process that cannot be started."""
    return Ending(RunState.FAILED, _error(fault, folder))


def _error(fault: BaseException, folder: Path) -> RunError:
    if disk.is_full(fault):
        return disk.error(folder, fault)
    if isinstance(fault, StageflowError):
        return RunError(type(fault).__name__, str(fault), fault.advice)
    detail = "".join(traceback.format_exception(fault))
    advice = "The agent could not carry the run; its log holds the same trace."
    return RunError("AgentFault", f"{type(fault).__name__}: {fault}", advice, detail)
