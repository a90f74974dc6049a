"""Replicas as threads of one process, which tell each other what ranks would send."""

from dataclasses import dataclass, field
from threading import Barrier
from typing import Any


@dataclass
class Meeting:
    """Where so many replicas leave what they tell each other."""

    size: int
    told: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.barrier = Barrier(self.size, timeout=240)


@dataclass
class ThreadGroup:
    """The group of the replica at `place`."""

    place: int
    meeting: Meeting

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(range(self.meeting.size))

    def tell(self, what: Any) -> list[Any]:
        """What each of them tells, once all have come."""
        self.meeting.told[self.place] = what
        self.meeting.barrier.wait()
        found = [self.meeting.told[place] for place in self.ranks]
        self.meeting.barrier.wait()
        return found
