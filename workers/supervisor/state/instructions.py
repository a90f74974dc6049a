"""What the supervisor does for an attempt, as its pure `step` says."""

from dataclasses import dataclass
from enum import Enum

from backend.runs.events import Chosen


class Do(Enum):
    """With the event that answers it; `Interrupted` may answer any."""

    LAUNCH = "prepare the job and start its ranks: Launched"
    WATCH = "wait for a moment for what the ranks print: Observed"
    REQUEST_CHECKPOINT = "ask the ranks for a last checkpoint"
    SHOW_STACKS = "let the ranks print their stacks"
    END_RANKS = "end every process of the attempt, on every host: RanksEnded"


@dataclass(frozen=True, slots=True)
class Write:
    """Write what was heard, and renew the lease when it is time: `Written`. `is_running`: all
    ranks do their work, so that the run counts as running."""

    is_running: bool


@dataclass(frozen=True, slots=True)
class PassOn:
    """Tell the ranks of other hosts what rank 0 has chosen."""

    chosen: Chosen


Instruction = Do | Write | PassOn
