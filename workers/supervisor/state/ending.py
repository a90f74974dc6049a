"""How an attempt ends: the final state, and the error for people. No I/O."""

from dataclasses import dataclass

from backend.runs.run import RunError
from backend.runs.states import RunState


@dataclass(frozen=True, slots=True)
class Ending:
    """`error` is given for a failed run alone."""

    state: RunState
    error: RunError | None = None


def _failed(kind: str, message: str, advice: str) -> Ending:
    """The end of a run that failed."""
    return Ending(RunState.FAILED, RunError(kind, message, advice))


SUCCEEDED = Ending(RunState.SUCCEEDED)
CANCELLED = Ending(RunState.CANCELLED)
STOPPED = _failed(
    "AgentStopped",
    "the node agent was stopped while the run was going on",
    "Start the agent again (`stageflow up`) and launch the run again.",
)
CUT_OFF = _failed(
    "DatabaseUnreachable",
    "the database did not answer for so long that the agent lost its lease",
    "Check the database and the network to it. What the ranks reported meanwhile has been "
    "written since.",
)
HELD_UP = _failed(
    "AgentHeldUp",
    "a write of the agent took so long that it lost its lease",
    "Check the database and the disks of this machine; set STAGEFLOW_LEASE to more seconds to "
    "tolerate longer writes.",
)
