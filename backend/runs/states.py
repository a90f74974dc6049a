"""The life of a run: a pure state machine."""

from enum import StrEnum

from backend.errors import StageflowError


class RunState(StrEnum):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in FINAL

    @property
    def is_live(self) -> bool:
        """An agent holds it."""
        return self in LIVE


LIVE = (RunState.STARTING, RunState.RUNNING)
FINAL = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)

RESTARTED = "restarted"
"""The outcome of an attempt after which its run is queued again."""

MOVES: dict[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.STARTING, RunState.FAILED, RunState.CANCELLED}),
    RunState.STARTING: frozenset(
        {RunState.RUNNING, RunState.FAILED, RunState.CANCELLED, RunState.QUEUED}
    ),
    RunState.RUNNING: frozenset({*FINAL, RunState.QUEUED}),
    RunState.SUCCEEDED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.CANCELLED: frozenset(),
}


class IllegalMove(StageflowError):
    """A run was asked to go to a state that does not follow its own."""


def move(now: RunState, to: RunState) -> RunState:
    """Return `to` if it may follow `now`; raise `IllegalMove` otherwise."""
    if to not in MOVES[now]:
        raise IllegalMove(f"a {now} run cannot become {to}")
    return to
