"""Which entries a spool takes when it fills up, and what the run's log says of the others."""

import time
from collections.abc import Sequence

from backend.runs.events import Spans, read_line
from backend.units import bytes_text, count_text
from workers.supervisor.spool.entries import Entry, EventLine, LogLines

BOUND = 64 << 20
"""Bytes: about 400,000 losses that are told one by one."""
TIMELINES, PRINTED = 0.5, 0.75
"""Shares of the bound beyond which timelines, and lines that ranks printed, are left out. Losses
and other metrics, files, checkpoints and the agent's own lines never are."""


class SpoolLimit:
    """`bound` in bytes. Says once when something is left out, and how much when all that waited
    is written."""

    def __init__(self, bound: int = BOUND) -> None:
        self._bound = bound
        self._num_timelines = self._num_lines = 0

    def is_full(self, size: int) -> bool:
        """With so many bytes that wait: the ranks have to wait too."""
        return size > self._bound

    def admitted(self, entries: Sequence[Entry], size: int) -> tuple[list[Entry], list[str]]:
        """What of `entries` is taken beside `size` bytes that wait, and the paths of the
        timelines that are not."""
        if size <= self._bound * TIMELINES:
            return [*self._summed_up(size), *entries], []
        had_none = not self._has_left_out
        left_out = [path for entry in entries if (path := _timeline(entry))]
        self._num_timelines += len(left_out)
        taken = [entry for entry in entries if not _timeline(entry)]
        if size > self._bound * PRINTED:
            taken = [self._without_printed(entry) for entry in taken]
        if had_none and self._has_left_out:
            text = (
                f"the database does not answer and {bytes_text(size)} wait on this node: "
                "timelines, then printed lines, are left out from now on"
            )
            taken.append(_logged(text))
        return taken, left_out

    @property
    def _has_left_out(self) -> bool:
        return bool(self._num_timelines or self._num_lines)

    def _summed_up(self, size: int) -> tuple[Entry, ...]:
        if size or not self._has_left_out:
            return ()
        text = (
            "left out while the database did not answer: "
            f"{count_text(self._num_timelines, 'timeline')} and "
            f"{count_text(self._num_lines, 'printed line')}"
        )
        self._num_timelines = self._num_lines = 0
        return (_logged(text),)

    def _without_printed(self, entry: Entry) -> Entry:
        if not isinstance(entry, LogLines):
            return entry
        own = tuple(line for line in entry.lines if line[0] is None)
        self._num_lines += len(entry.lines) - len(own)
        return LogLines(own)


def _timeline(entry: Entry) -> str:
    """The path of an announced timeline; "" where the entry is something else."""
    event = read_line(entry.line) if isinstance(entry, EventLine) else None
    return event.path if isinstance(event, Spans) else ""


def _logged(text: str) -> LogLines:
    return LogLines(((None, time.time(), text),))
