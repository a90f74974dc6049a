"""Which runs to list, in which order, and one page of them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from backend.runs.run import Run
from backend.runs.states import RunState


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Runs that meet every given condition.

    states       any of these; none = every state
    text         sought in name, note, owner and tags, whatever the case
    tag          has this tag
    since, until asked for at or after the one and before the other
    accuracy     the last held-out accuracy lies in these bounds, 0 to 1
    metric       the last value of `metric` of an ended run is known and lies in these bounds
    """

    states: tuple[RunState, ...] = ()
    kind: str | None = None
    text: str = ""
    definition_id: int | None = None
    plan_id: int | None = None
    owner: str | None = None
    tag: str | None = None
    starred: bool = False
    since: datetime | None = None
    until: datetime | None = None
    min_accuracy: float | None = None
    max_accuracy: float | None = None
    metric: str | None = None
    min_metric: float | None = None
    max_metric: float | None = None


class RunSort(StrEnum):
    """What runs can be ordered by. "created" is the order in which they were asked for."""

    CREATED = "created"
    NAME = "name"
    STATE = "state"
    OWNER = "owner"
    ACCURACY = "accuracy"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class RunOrder:
    """Runs without the value that is sorted by come last; the newest first among equals."""

    by: RunSort = RunSort.CREATED
    descending: bool = True


@dataclass(frozen=True, slots=True)
class RunPage:
    """`total` counts every run that meets the filter."""

    runs: tuple[Run, ...]
    total: int


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """`place` in the queue from 1; `reason` says for people why it does not run yet. `start` is
    when it is expected to start; None where nobody knows."""

    run: Run
    place: int
    reason: str
    start: datetime | None = None
