"""Spans of the actions that a rank performs, on a clock that all ranks share."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from backend.pipeline.actions import Action
from backend.pipeline.columns import encode
from backend.pipeline.timeline import Span
from backend.runs.events import Spans
from workers.runtime.clock import Offset, now, offset
from workers.runtime.marks import Mark, marks
from workers.runtime.world import World

SAME = Offset(0.0, 0.0)
"""The processes of one machine have one clock."""


class Recorder:
    """One segment of one rank; seconds count from rank 0's start of the segment. Between hosts
    `offset` is how far this one's clock is ahead of rank 0's, estimated anew each time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._taken: list[tuple[int, Action, Mark, Mark]] = []
        self.offset = offset(world.rank, world.size, world.device) if world.hosts > 1 else SAME
        world.barrier()
        self._origin = world.agreed(now()) + self.offset.seconds
        self._marks = marks(world.device, self._origin)

    def __len__(self) -> int:
        """Actions that have ended."""
        return len(self._taken)

    def now(self) -> float:
        """Seconds since the origin, when all that was given to the device is done."""
        self._marks.finish()
        return self.clock()

    def clock(self) -> float:
        """Seconds since the origin, without a word to the device: for other threads."""
        return now() - self._origin

    def mark(self) -> Mark:
        """Where the rank is in its work."""
        return self._marks.mark()

    def add(self, index: int, action: Action, start: Mark, end: Mark) -> None:
        self._taken.append((index, action, start, end))

    @property
    def spans(self) -> list[Span]:
        """What was added so far, in order."""
        self._marks.finish()
        seconds = self._marks.seconds
        return [
            Span(self._world.rank, index, action, seconds(start), seconds(end))
            for index, action, start, end in self._taken
        ]

    def write(self, folder: Path, segment: int) -> Spans:
        """Write the spans into the job's folder; the event that announces them."""
        path = folder / f"spans-{self._world.rank}-{segment}.arrow"
        path.write_bytes(encode(self.spans))
        return Spans(self._world.rank, segment, str(path), len(self._taken))

    def write_beside(
        self, kind: Literal["loading", "saving"], folder: Path, segment: int, spans: Sequence[Span]
    ) -> Spans:
        """Likewise when what was done for which action."""
        path = folder / f"{kind}-{self._world.rank}-{segment}.arrow"
        path.write_bytes(encode(spans))
        return Spans(self._world.rank, segment, str(path), len(spans), kind)

    def within(self, stretches: Iterable[tuple[float, float]]) -> list[Span]:
        """Stretches of this rank's time (start, end), each for the action in which it began."""
        spans, found = self.spans, []
        starts = [span.start for span in spans]
        for start, end in stretches:
            place = bisect_right(starts, start) - 1
            if place >= 0:
                found.append(replace(spans[place], start=start, end=end))
        return found
