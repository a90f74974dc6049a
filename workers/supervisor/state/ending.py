"""How an attempt ends: the final state, and the error for people. No I/O."""

from dataclasses import dataclass

from backend.runs.attempts.checkpoints import NOT_BEGUN
from backend.runs.run import RunError
from backend.runs.states import RunState

PATIENCE = 1.5
"""Seconds for a last checkpoint, of the three within which a cancelled run is gone."""


@dataclass(frozen=True, slots=True)
class Ending:
    """`error` is given for a failed run alone. `patience`: how many seconds a last checkpoint is
    waited for, where somebody asks for this end."""

    state: RunState
    error: RunError | None = None
    patience: float = PATIENCE


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
NOTHING_BEGUN = _failed(
    NOT_BEGUN,
    "the node agent was stopped before the ranks had begun their work",
    "Start the agent again (`stageflow up`), or another one: the run is back in the queue. Launch "
    "it again where it has failed.",
)


def warned(seconds: float) -> Ending:
    """The end of a run whose agent will itself be ended in `seconds`. Half of them are for a last
    checkpoint; in the others the ranks are ended and the end is written."""
    error = RunError(
        "AgentWarned",
        f"the node agent was warned that it will be ended within {seconds:.0f} s",
        "A run with a checkpoint goes on by itself where there is an agent for it. Launch others "
        "again, with a longer warning or `--save-seconds`.",
    )
    return Ending(RunState.FAILED, error, seconds / 2)


def asked_of_agent(
    must_stop: bool, seconds_left: float | None, has_begun: bool = True
) -> Ending | None:
    """The end that follows for what it carries: it must stop now, or will be ended in
    `seconds_left`; None where neither is so. `has_begun`: a rank does its work."""
    if not has_begun and (must_stop or seconds_left is not None):
        return NOTHING_BEGUN
    if must_stop:
        return STOPPED
    return None if seconds_left is None else warned(seconds_left)


OUTGROWN = _failed(
    "NodesReturned",
    "nodes that the run had lost are back, and its own plan takes less time",
    "The run goes on by itself, from the checkpoint that it has just made.",
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
