"""What the ranks say, written to the database in batches: log, metrics, progress, files."""

import time
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path

from backend.codec import from_json
from backend.errors import StageflowError
from backend.pipeline.columns import decode
from backend.profiles.profile import Profile
from backend.runs.events import (
    Artifact,
    Event,
    Heartbeat,
    Metrics,
    ProfileReady,
    Progress,
    Saved,
    Spans,
    read_line,
    write_line,
)
from backend.runs.history.records import LogText
from backend.runs.request.spec import TrainSpec
from backend.runs.run import RunProgress
from backend.runs.use import Use, UseHistory, UsePoint
from backend.services.runs.attempt import Attempt
from backend.storage.errors import DatabaseUnreachable
from workers.sandbox.limits import Limits
from workers.supervisor.ranks.lines import MAX_LINE, PrintedLine
from workers.supervisor.reporting.announced import Announced, opened
from workers.supervisor.reporting.checkpoint_copy import CheckpointCopier
from workers.supervisor.reporting.handed_over import HandedOver
from workers.supervisor.reporting.memory_limit import bounded
from workers.supervisor.reporting.record_bounds import RecordBounds
from workers.supervisor.reporting.results import Results
from workers.supervisor.spool.entries import CopiedCheckpoint, Entry, EventLine, LogLines
from workers.supervisor.spool.limit import SpoolLimit
from workers.supervisor.spool.spool import Spool

MAX_BEHIND = 1_000
"""Entries that wait for a database that answers before the ranks have to wait, too."""
PAUSE = 0.02

FileEvent = Spans | ProfileReady | Artifact


class EventWriter:
    """Holds what is heard, in its order, until `flush` has written it. Every write has a number
    and keeps it, so that one whose answer was lost with the connection, or that an agent made
    before it died, is not made twice. `folder` is the one in which the ranks write, `limits` hold
    for what they hand over."""

    def __init__(
        self, attempt: Attempt, folder: Path, spool: Spool, limits: Limits | None = None
    ) -> None:
        self.results = Results()
        self.folder = folder
        self.is_away = False
        """The database did not answer at the last write."""
        self._attempt = attempt
        self._logs: list[LogText] = []
        self._said: set[str] = set()
        self._has_begun = False
        self._progress: RunProgress | None = None
        self._use, self._uses = UseHistory(), dict[int, Use]()
        self._newest: dict[str, int] = {}
        """Step of each metric."""
        self._heard: list[Entry] = []
        self._spool = spool
        self._limit = SpoolLimit()
        self._handed_over = HandedOver(limits)
        self._bounds = RecordBounds()
        self._copier = CheckpointCopier(folder, attempt.checkpoint_folder, self._handed_over)

    def hear(self, line: PrintedLine) -> Event | None:
        """Note one line; return the event in it, None for plain text, which is logged."""
        event = line.event
        match event:
            case None:
                self.log(line.rank, line.time, line.text[:MAX_LINE])
            case Metrics() if not self._bounds.admits(event):
                event = None
                self._say_once(self._bounds.words)
            case Metrics():
                event = self._news(event)
                if event.steps:
                    self._heard.append(EventLine(write_line(event)))
            case Spans() | ProfileReady() | Artifact():
                self._heard.append(EventLine(line.text))
            case Progress(phase, done, total):
                self._progress = RunProgress(phase, done, total)
            case Heartbeat(rank, _, Use() as use):
                self._uses[rank] = use
            case Saved():
                self._copier.copy(event)
            case _:
                pass
        self.results.note(event, self._attempt.run.asked)
        return event

    def _news(self, told: Metrics) -> Metrics:
        """What was not told before, so that a metric has one value per step: where the rank that
        tells it is lost, others tell what they remember; a definition may tell anything."""
        newest, kept = self._newest.get(told.name, -1), []
        for place, step in enumerate(told.steps):
            if step > newest:
                newest = step
                kept.append(place)
        self._newest[told.name] = newest
        return replace(
            told,
            steps=tuple(told.steps[place] for place in kept),
            values=tuple(told.values[place] for place in kept),
            times=tuple(told.times[place] for place in kept),
        )

    def log(self, rank: int | None, when: float, text: str) -> None:
        """One line of the run's log; rank None is the agent."""
        if rank is None or self._bounds.admits_line(text):
            self._logs.append((rank, when, text))
        else:
            self._say_once(f"the log is cut off here: {self._bounds.log_words}")

    def say(self, text: str) -> None:
        """A line of the agent's own, now."""
        self.log(None, time.time(), text)

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.say(text)

    def begin(self) -> None:
        """All ranks do their work now; said once."""
        if not self._has_begun:
            self._attempt.running()
            self._has_begun = True

    @property
    def num_waiting(self) -> int:
        """Entries that are not written yet."""
        return self._spool.num_waiting + len(self._heard)

    @property
    def is_behind(self) -> bool:
        """The ranks tell more than the database takes, or than the spool while it is away: let
        them wait."""
        is_slow = self.num_waiting > MAX_BEHIND and not self.is_away
        return is_slow or self._limit.is_full(self._spool.size)

    def flush(self, seconds: float = inf) -> None:
        """Put what there is on the disk, then write it, for about `seconds` at most; raises
        `LeaseLost`, `OSError`, and what the storage raises."""
        self._gather()
        try:
            self._drain(time.monotonic() + seconds)
        except DatabaseUnreachable:
            self.is_away = True
            raise
        self.is_away = False
        self._copier.check()

    def skip(self, number: int) -> None:
        """Entries up to that number were written by an agent that died then."""
        while (waiting := self._spool.first()) is not None and waiting[0] <= number:
            self._spool.done()

    def settle(self, seconds: float) -> None:
        """Wait, so long at most, until the checkpoints that were announced are copied."""
        deadline = time.monotonic() + seconds
        while not self._copier.is_idle and time.monotonic() < deadline:
            time.sleep(PAUSE)

    def close(self) -> None:
        """Nothing of this attempt is to be written any more."""
        self._spool.remove()
        self._copier.close()

    def _gather(self) -> None:
        self._heard.extend(self._copier.copied())
        logged = [LogLines(tuple(self._logs))] if self._logs else []
        entries, left_out = self._limit.admitted([*self._heard, *logged], self._spool.size)
        self._spool.add(entries)
        self._heard, self._logs = [], []
        for path in left_out:
            with suppress(StageflowError), opened(self.folder, path):
                pass

    def _drain(self, deadline: float) -> None:
        if self._progress is not None:
            self._attempt.progress(self._progress)
            self._progress = None
        if self._uses:
            self._write_use()
        while (waiting := self._spool.first()) is not None and time.monotonic() < deadline:
            self._write(*waiting)
            self._spool.done()

    def _write_use(self) -> None:
        """That of ranks which told none since the last write is not known."""
        uses = tuple(self._uses.get(rank, Use("")) for rank in range(max(self._uses) + 1))
        self._uses.clear()
        if points := self._use.add(UsePoint(time.time(), uses)):
            self._attempt.use(points)

    def _write(self, number: int, entry: Entry) -> None:
        """Make a write; what a checkpoint counts on was written before it."""
        match entry:
            case LogLines(lines):
                self._attempt.logs(lines, number)
            case CopiedCheckpoint(mark, files):
                spec = self._attempt.run.spec
                keep = spec.checkpoints.keep if isinstance(spec, TrainSpec) else 1
                self._attempt.checkpoint(mark, files, keep, number)
                self.results.checkpoints += 1
            case EventLine(line):
                self._write_event(number, read_line(line))

    def _write_event(self, number: int, event: Event | None) -> None:
        match event:
            case Metrics():
                self._attempt.metrics(event, number)
            case Spans() | ProfileReady() | Artifact():
                with opened(self.folder, event.path) as file:
                    size = file.size
                    self._handed_over.add(size, num_files=isinstance(event, Artifact))
                    self._keep(number, event, file, size)
            case _:
                pass

    def _keep(self, number: int, event: FileEvent, file: Announced, size: int) -> None:
        """Store one file, which was counted with that size; the user's code may have announced
        anything."""
        match event:
            case Spans():
                self._keep_spans(number, event, file.read())
            case ProfileReady():
                with bounded():
                    profile: Profile = from_json(Profile, file.read())
                self.results.profile_id = self._attempt.profile(profile, number)
            case Artifact():
                self._attempt.artifact(event.name, file.path, number, size)

    def _keep_spans(self, number: int, event: Spans, data: bytes) -> None:
        with bounded():
            spans = decode(data)
        self._attempt.spans(event.kind, event.rank, event.segment, data, len(spans), number)
        if event.kind == "measured":
            self.results.note_spans(event.rank, event.segment, spans)
