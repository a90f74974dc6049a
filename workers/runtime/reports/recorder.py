"""Spans of the actions that a rank performs, on a clock that all ranks share."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from backend.pipeline.actions import Action
from backend.pipeline.columns import encode
from backend.pipeline.timeline import Span, Timeline
from backend.runs.events import Spans
from workers.runtime.messages.world import World
from workers.runtime.reports.clock import Offset, now, offset
from workers.runtime.reports.timestamps import Timestamp, timestamps

SAME = Offset(0.0, 0.0)
"""The processes of one machine have one clock."""


class Recorder:
    """One segment of one rank; seconds count from rank 0's start of the segment. Between hosts
    `offset` is how far this one's clock is ahead of rank 0's, estimated anew each time. `scale`:
    seconds that pass here for each second that is told."""

    def __init__(self, world: World, scale: float = 1.0) -> None:
        self._world, self._scale = world, scale
        self._taken: list[tuple[int, Action, Timestamp, Timestamp]] = []
        self.offset = offset(world.rank, world.size, world.device) if world.hosts > 1 else SAME
        world.barrier()
        self._origin = world.agreed(now()) + self.offset.seconds
        self._timestamps = timestamps(world.device, self._origin)

    def __len__(self) -> int:
        """Actions that have ended."""
        return len(self._taken)

    def now(self) -> float:
        """Seconds since the origin, when all that was given to the device is done."""
        self._timestamps.finish()
        return self.clock()

    def clock(self) -> float:
        """Seconds since the origin, without a word to the device: for other threads."""
        return (now() - self._origin) / self._scale

    def mark(self) -> Timestamp:
        """Where the rank is in its work."""
        return self._timestamps.mark()

    def add(self, index: int, action: Action, start: Timestamp, end: Timestamp) -> None:
        self._taken.append((index, action, start, end))

    @property
    def spans(self) -> list[Span]:
        """What was added so far, in order."""
        self._timestamps.finish()
        return [
            Span(self._world.rank, index, action, self._seconds(start), self._seconds(end))
            for index, action, start, end in self._taken
        ]

    def _seconds(self, moment: Timestamp) -> float:
        return self._timestamps.seconds(moment) / self._scale

    def write(
        self,
        folder: Path,
        segment: int,
        kind: Literal["measured", "loading", "saving"] = "measured",
        spans: Sequence[Span] | None = None,
    ) -> Spans:
        """Write the spans into the job's folder: those of the actions, or others that tell for
        which action something was done beside them. The event that announces them."""
        spans = self.spans if spans is None else spans
        name = "spans" if kind == "measured" else kind
        path = folder / f"{name}-{self._world.rank}-{segment}.arrow"
        path.write_bytes(encode(Timeline.of(spans)))
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
