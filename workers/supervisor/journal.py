"""What the ranks say, written to the database in batches: log, metrics, progress, files."""

import time
from collections import deque
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from backend.codec import from_json
from backend.pipeline.columns import decode
from backend.pipeline.timeline import Span
from backend.profiles.profile import Profile
from backend.runs.attempt import Attempt
from backend.runs.events import (
    HELD_OUT_LOSS,
    Artifact,
    Clock,
    Event,
    Metrics,
    ProfileReady,
    Progress,
    Saved,
    Spans,
    read_line,
)
from backend.runs.ports import LogText
from backend.runs.run import RunProgress
from backend.runs.spec import TrainSpec
from workers.supervisor.announced import Announced, opened
from workers.supervisor.appetite import bounded
from workers.supervisor.keeping import Keeper, Whole
from workers.supervisor.lines import Heard

MAX_LOG_LINES = 100_000
"""Lines of one attempt that are kept; a rank that prints more is cut off with a note."""

MAX_BEHIND = 1_000
"""Events that wait for the database before the ranks have to wait, too."""
PAUSE = 0.02

FileEvent = Spans | ProfileReady | Artifact
Entry = FileEvent | Metrics | Whole | tuple[LogText, ...]


@dataclass
class Results:
    """What the events have told so far that the summary needs.

    `spans` holds those of the newest `segment`, by rank; `reached` is when an evaluation first
    met the run's target, in Unix seconds.
    """

    losses: dict[int, list[float]] = field(default_factory=dict)
    accuracy: float | None = None
    reached: float | None = None
    profile_id: int | None = None
    segment: int | None = None
    spans: dict[int, tuple[Span, ...]] = field(default_factory=dict)
    epochs: int = 0
    checkpoints: int = 0
    clocks: dict[int, Clock] = field(default_factory=dict)


class Journal:
    """Holds what is heard, in its order, until `flush` has written it. Every write has a number
    and keeps it, so that one whose answer was lost with the connection is not made twice.
    `folder` is the one in which the ranks write."""

    def __init__(self, attempt: Attempt, folder: Path) -> None:
        self.results = Results()
        self._attempt = attempt
        self.folder = folder
        self._logs: list[LogText] = []
        self._num_logs = 0
        self._has_begun = False
        self._progress: RunProgress | None = None
        self._entries: deque[Entry] = deque()
        self._num_written = 0
        self._keeper = Keeper(folder, attempt.checkpoint_folder)

    def hear(self, heard: Heard) -> Event | None:
        """Note one line; return the event in it, None for plain text, which is logged."""
        event = _own(read_line(heard.text), heard.rank)
        match event:
            case None:
                self.log(heard.rank, heard.time, heard.text)
            case Metrics():
                self._note(event)
            case Progress():
                self._progress = RunProgress(event.phase, event.done, event.total)
            case Spans() | ProfileReady() | Artifact():
                self._entries.append(event)
            case Saved():
                self._keeper.hear(event)
            case Clock(rank):
                self.results.clocks[rank] = event
            case _:
                pass
        return event

    def log(self, rank: int | None, when: float, text: str) -> None:
        """One line of the run's log; rank None is the agent."""
        self._num_logs += 1
        if self._num_logs == MAX_LOG_LINES:
            rank, text = None, f"the log is cut off here: more than {MAX_LOG_LINES} lines"
        if self._num_logs <= MAX_LOG_LINES or rank is None:
            self._logs.append((rank, when, text))

    def _note(self, event: Metrics) -> None:
        self._entries.append(event)
        if event.name == "loss":
            self.results.losses.setdefault(event.epoch, []).extend(event.values)
        if event.name == "accuracy" and event.values:
            self.results.accuracy = event.values[-1]
        self._note_target(event)

    def _note_target(self, told: Metrics) -> None:
        """When what is `told` first met the run's target, if it is what that asks for."""
        spec = self._attempt.run.spec
        if not isinstance(spec, TrainSpec) or self.results.reached is not None:
            return
        for value, when in zip(told.values, told.times, strict=True):
            accuracy = value if told.name == "accuracy" else None
            loss = value if told.name == HELD_OUT_LOSS else None
            if spec.is_met(accuracy, loss):
                self.results.reached = when
                return

    def begin(self) -> None:
        """All ranks do their work now; said once."""
        if not self._has_begun:
            self._attempt.running()
            self._has_begun = True

    @property
    def is_behind(self) -> bool:
        """The ranks tell more than the database takes: let them wait."""
        return len(self._entries) > MAX_BEHIND

    def flush(self, seconds: float = inf) -> None:
        """Write what there is, for about `seconds` at most; raises `LeaseLost` and what the
        storage raises."""
        deadline = time.monotonic() + seconds
        if self._logs:
            self._entries.append(tuple(self._logs))
            self._logs = []
        self._entries.extend(self._keeper.whole())
        if self._progress is not None:
            self._attempt.progress(self._progress)
            self._progress = None
        while self._entries and time.monotonic() < deadline:
            self._write(self._entries[0])
            self._entries.popleft()
            self._num_written += 1
        self._keeper.check()

    def settle(self, seconds: float) -> None:
        """Wait, so long at most, until the checkpoints that were announced are copied."""
        deadline = time.monotonic() + seconds
        while not self._keeper.is_idle and time.monotonic() < deadline:
            time.sleep(PAUSE)

    def _write(self, entry: Entry) -> None:
        """Make the next write; what a checkpoint counts on was written before it."""
        match entry:
            case Metrics():
                self._attempt.metrics(entry, self._num_written + 1)
            case Spans() | ProfileReady() | Artifact():
                self._store(entry)
            case Whole(mark, files):
                self._attempt.checkpoint(mark, files, self._num_kept)
                self.results.checkpoints += 1
            case _:
                self._attempt.logs(entry, self._num_written + 1)

    @property
    def _num_kept(self) -> int:
        spec = self._attempt.run.spec
        return spec.checkpoints.keep if isinstance(spec, TrainSpec) else 1

    def _store(self, event: FileEvent) -> None:
        """Move one file to where it is kept; the user's code may have announced anything."""
        with opened(self.folder, event.path) as file:
            self._keep(event, file)

    def _keep(self, event: FileEvent, file: Announced) -> None:
        match event:
            case Spans():
                self._store_spans(event, file.read())
            case ProfileReady():
                with bounded():
                    profile: Profile = from_json(Profile, file.read())
                self.results.profile_id = self._attempt.profile(profile)
            case Artifact():
                self._attempt.artifact(event.name, file.path)

    def _store_spans(self, event: Spans, data: bytes) -> None:
        with bounded():
            spans = decode(data)
        self._attempt.spans(
            event.kind, event.rank, event.segment, data, len(spans), self._num_written + 1
        )
        if event.kind != "measured":
            return
        if event.segment != self.results.segment:
            self.results.segment, self.results.spans = event.segment, {}
        self.results.spans[event.rank] = spans


def _own(event: Event | None, rank: int) -> Event | None:
    """The event, unless it speaks for another rank than the one that printed it."""
    return event if getattr(event, "rank", rank) == rank else None
