"""When each action ran: predicted by the simulator or measured by the executor."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from backend.pipeline.actions import Action
from backend.pipeline.kinds import Bools, Floats, Ints
from backend.pipeline.rows import Rows


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


@dataclass(frozen=True, eq=False)
class Timeline:
    """The spans of one segment as columns, ordered by rank, then by index in the rank's program.
    `spans` is the view for those who read one at a time."""

    rank: Ints
    index: Ints
    rows: Rows
    start: Floats
    end: Floats

    @staticmethod
    def of(spans: Iterable[Span]) -> "Timeline":
        """The columns of spans, in the order given."""
        spans = list(spans)
        return Timeline(
            np.array([span.rank for span in spans], np.int64),
            np.array([span.index for span in spans], np.int64),
            Rows.of(span.action for span in spans),
            np.array([span.start for span in spans], np.float64),
            np.array([span.end for span in spans], np.float64),
        )

    @staticmethod
    def joined(parts: Sequence["Timeline"]) -> "Timeline":
        """The spans of several, ordered by rank and index."""
        if not parts:
            return Timeline.of(())
        names = ("rank", "index", "start", "end")
        rank, index, start, end = (
            np.concatenate([getattr(part, name) for part in parts]) for name in names
        )
        found = Timeline(rank, index, Rows.joined([part.rows for part in parts]), start, end)
        later = (rank[1:] > rank[:-1]) | ((rank[1:] == rank[:-1]) & (index[1:] >= index[:-1]))
        return found if later.all() else found.at(np.lexsort((index, rank)))

    def at(self, pick: Ints | Bools | slice) -> "Timeline":
        """The spans that numbers, a mask or a slice pick."""
        columns = (self.rank[pick], self.index[pick], self.rows.at(pick))
        return Timeline(*columns, self.start[pick], self.end[pick])

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def num_ranks(self) -> int:
        return int(self.rank.max(initial=-1)) + 1

    @property
    def seconds(self) -> Floats:
        """How long each span takes."""
        return self.end - self.start

    @property
    def makespan(self) -> float:
        """Seconds from the first start to the last end (0 when empty)."""
        return float(self.end.max() - self.start.min()) if len(self) else 0.0

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """One object per span."""
        columns = (self.rank, self.index, self.start, self.end)
        rank, index, start, end = (column.tolist() for column in columns)
        return tuple(map(Span, rank, index, self.rows.actions(), start, end))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Timeline):
            return NotImplemented
        names = ("rank", "index", "start", "end")
        same = all(np.array_equal(getattr(self, n), getattr(other, n)) for n in names)
        return same and self.rows == other.rows
