"""A run as it is followed in an experiment tracker: how far it was sent, and why no further."""

from dataclasses import dataclass, field
from enum import StrEnum


class Following(StrEnum):
    """ON: what comes is sent. DONE: all of an ended run was. FAILED: given up. OFF: somebody has
    stopped it."""

    ON = "on"
    DONE = "done"
    FAILED = "failed"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class TrackerPlace:
    """Where a run is in a tracker.

    remote  the tracker's own name for it; "" = it does not know the run yet
    url     its page there; "" = it has none
    mark    how far a tracker that keeps files has written: what lies behind was not confirmed
    """

    remote: str = ""
    url: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Followed:
    """`key` names the run in the tracker, drawn when somebody asked to follow it there.

    position  the newest stored point that was sent
    sent      how many were
    steps     the newest step sent of each metric
    tries     failures since something was sent
    due       Unix seconds before which it is not tried again
    error     why it was not sent, with what to do
    """

    run_id: int
    tracker: str
    key: str
    state: Following = Following.ON
    place: TrackerPlace = TrackerPlace()
    position: int = 0
    sent: int = 0
    steps: dict[str, int] = field(default_factory=dict)
    tries: int = 0
    due: float = 0.0
    error: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A stored point of a metric: fields as in `MetricPoint`, `id` grows as they are stored."""

    id: int
    name: str
    step: int
    epoch: int
    value: float
    time: float
