"""How an attempt ends: the final state, and the error for people. No I/O."""

from dataclasses import dataclass

from backend.runs.run import RunError
from backend.runs.states import RunState


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
        "Look at the database and the network to it. What the ranks told meanwhile has been "
        "written since.",
    ),
)

HELD_UP = Ending(
    RunState.FAILED,
    RunError(
        "AgentHeldUp",
        "a write of the agent took so long that it could not keep its lease",
        "Look at the database and at the disks of this machine; set STAGEFLOW_LEASE to more "
        "seconds to tolerate longer writes.",
    ),
)
