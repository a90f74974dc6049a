"""What happens to an attempt, as its pure `step` is told it. Times are monotonic seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from backend.runs.run import RunError
from workers.supervisor.state.ending import Ending
from workers.supervisor.state.rank_states import RankStates, Told


@dataclass(frozen=True, slots=True)
class Launched:
    """The ranks are started."""

    ranks: RankStates


@dataclass(frozen=True, slots=True)
class Observed:
    """What the ranks printed, the exit codes of those that have ended, a limit that the run has
    exceeded; the lease has lapsed; the agent must stop, or will be ended in `seconds_left`."""

    now: float
    lines: tuple[Told, ...] = ()
    exits: Mapping[int, int] = field(default_factory=dict)
    limit: RunError | None = None
    lease_lapsed: bool = False
    must_stop: bool = False
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """The database has what the ranks told, or did not answer; somebody has asked it to cancel
    the run, or for the stacks of its ranks. `num_checkpoints` are committed now."""

    now: float
    answered: bool = True
    cancel_requested: bool = False
    num_checkpoints: int = 0
    stacks_asked: bool = False


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The supervisor cannot go on: a fault of its own work, a cancel before the ranks were
    started. None: its lease is lost, and another agent says how the run ends."""

    ending: Ending | None


@dataclass(frozen=True, slots=True)
class RanksEnded:
    """No process of the attempt is left; their last lines."""

    now: float
    lines: tuple[Told, ...] = ()


AttemptEvent = Launched | Observed | Written | Interrupted | RanksEnded
