"""What the ranks say, written to the database in batches: log, metrics, progress, files."""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from backend.codec import from_json
from backend.errors import StageflowError
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
from backend.storage.errors import DatabaseUnreachable
from workers.supervisor.announced import Announced, opened
from workers.supervisor.appetite import bounded
from workers.supervisor.keeping import Keeper, Whole
from workers.supervisor.lines import Heard
from workers.supervisor.spool import BOUND, Entry, Said, Spool, Told
from workers.supervisor.spool_room import Room

MAX_LOG_LINES = 100_000
"""Lines of one attempt that are kept; a rank that prints more is cut off with a note."""

MAX_BEHIND = 1_000
"""Entries that wait for a database that answers before the ranks have to wait, too."""
PAUSE = 0.02

FileEvent = Spans | ProfileReady | Artifact


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
    and keeps it, so that one whose answer was lost with the connection, or that an agent made
    before it died, is not made twice. `folder` is the one in which the ranks write; `bound` in
    bytes (see `spool`)."""

    def __init__(self, attempt: Attempt, folder: Path, spool: Spool, bound: int = BOUND) -> None:
        self.results = Results()
        self._attempt = attempt
        self.folder = folder
        self._logs: list[LogText] = []
        self._num_logs = 0
        self._has_begun = False
        self._progress: RunProgress | None = None
        self._told: list[Told | Whole] = []
        self._spool = spool
        self._room = Room(bound)
        self._is_away = False
        self._keeper = Keeper(folder, attempt.checkpoint_folder)

    def hear(self, heard: Heard) -> Event | None:
        """Note one line; return the event in it, None for plain text, which is logged."""
        event = _own(read_line(heard.text), heard.rank)
        match event:
            case None:
                self.log(heard.rank, heard.time, heard.text)
            case Metrics():
                self._told.append(Told(heard.text))
                self._note(event)
            case Progress():
                self._progress = RunProgress(event.phase, event.done, event.total)
            case Spans() | ProfileReady() | Artifact():
                self._told.append(Told(heard.text))
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
    def num_waiting(self) -> int:
        """Entries that are not written yet."""
        return len(self._spool) + len(self._told)

    @property
    def is_behind(self) -> bool:
        """The ranks tell more than the database takes, or than the spool while it is away: let
        them wait."""
        is_slow = self.num_waiting > MAX_BEHIND and not self._is_away
        return is_slow or self._room.is_full(self._spool.size)

    @property
    def is_away(self) -> bool:
        """The database did not answer at the last write."""
        return self._is_away

    def flush(self, seconds: float = inf) -> None:
        """Put what there is on the disk, then write it, for about `seconds` at most; raises
        `LeaseLost`, `OSError`, and what the storage raises."""
        self._gather()
        try:
            self._drain(time.monotonic() + seconds)
        except DatabaseUnreachable:
            self._is_away = True
            raise
        self._is_away = False
        self._keeper.check()

    def _drain(self, deadline: float) -> None:
        if self._progress is not None:
            self._attempt.progress(self._progress)
            self._progress = None
        while (waiting := self._spool.first()) is not None and time.monotonic() < deadline:
            self._write(*waiting)
            self._spool.done()

    def skip(self, number: int) -> None:
        """Entries up to that number were written by an agent that died then."""
        while (waiting := self._spool.first()) is not None and waiting[0] <= number:
            self._spool.done()

    def close(self) -> None:
        """Nothing of this attempt is to be written any more."""
        self._spool.remove()
        self._keeper.close()

    def _gather(self) -> None:
        self._told.extend(self._keeper.whole())
        said = [Said(tuple(self._logs))] if self._logs else []
        taken = self._room.taken([*self._told, *said], self._spool.size)
        self._spool.add(taken.entries)
        self._told, self._logs = [], []
        for path in taken.left_out:
            with suppress(StageflowError), opened(self.folder, path):
                pass

    def settle(self, seconds: float) -> None:
        """Wait, so long at most, until the checkpoints that were announced are copied."""
        deadline = time.monotonic() + seconds
        while not self._keeper.is_idle and time.monotonic() < deadline:
            time.sleep(PAUSE)

    def _write(self, number: int, entry: Entry) -> None:
        """Make a write; what a checkpoint counts on was written before it."""
        match entry:
            case Said(lines):
                self._attempt.logs(lines, number)
            case Whole(mark, files):
                self._attempt.checkpoint(mark, files, self._num_kept, number)
                self.results.checkpoints += 1
            case Told(line):
                self._pass_on(number, read_line(line))

    def _pass_on(self, number: int, event: Event | None) -> None:
        match event:
            case Metrics():
                self._attempt.metrics(event, number)
            case Spans() | ProfileReady() | Artifact():
                self._store(number, event)
            case _:
                pass

    @property
    def _num_kept(self) -> int:
        spec = self._attempt.run.spec
        return spec.checkpoints.keep if isinstance(spec, TrainSpec) else 1

    def _store(self, number: int, event: FileEvent) -> None:
        """Move one file to where it is kept; the user's code may have announced anything."""
        with opened(self.folder, event.path) as file:
            self._keep(number, event, file)

    def _keep(self, number: int, event: FileEvent, file: Announced) -> None:
        match event:
            case Spans():
                self._store_spans(number, event, file.read())
            case ProfileReady():
                with bounded():
                    profile: Profile = from_json(Profile, file.read())
                self.results.profile_id = self._attempt.profile(profile, number)
            case Artifact():
                self._attempt.artifact(event.name, file.path, number)

    def _store_spans(self, number: int, event: Spans, data: bytes) -> None:
        with bounded():
            spans = decode(data)
        self._attempt.spans(event.kind, event.rank, event.segment, data, len(spans), number)
        if event.kind != "measured":
            return
        if event.segment != self.results.segment:
            self.results.segment, self.results.spans = event.segment, {}
        self.results.spans[event.rank] = spans


def _own(event: Event | None, rank: int) -> Event | None:
    """The event, unless it speaks for another rank than the one that printed it."""
    return event if getattr(event, "rank", rank) == rank else None
