"""When each action ran: predicted by the simulator or measured by the executor."""

from dataclasses import dataclass

from backend.pipeline.actions import Action


@dataclass(frozen=True, slots=True)
class Span:
    """One action of one rank in time. `index` is its place in the rank's program;
    `start` and `end` are seconds since the segment began."""

    rank: int
    index: int
    action: Action
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Timeline:
    """The spans of one segment, ordered by rank, then by index in the rank's program."""

    spans: tuple[Span, ...]

    @property
    def num_ranks(self) -> int:
        return max((span.rank for span in self.spans), default=-1) + 1

    @property
    def makespan(self) -> float:
        """Seconds from the first start to the last end (0 when empty)."""
        if not self.spans:
            return 0.0
        return max(s.end for s in self.spans) - min(s.start for s in self.spans)
