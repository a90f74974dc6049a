"""Which entries a spool still takes when it fills up, and what is said of the others."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from backend.runs.events import Spans, read_line
from backend.runs.ports import LogText
from workers.supervisor.spool import Entry, Said, Told

TIMELINES, LINES = 0.5, 0.75
"""Shares of the bound beyond which timelines, and lines that ranks printed, are left out."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What goes into the spool, and the paths of the files that do not."""

    entries: tuple[Entry, ...]
    left_out: tuple[str, ...]


class Room:
    """`bound` in bytes. Says once when something is left out, and how much when all that waited
    is written."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._num_timelines = self._num_lines = 0

    def is_full(self, size: int) -> bool:
        """With so many bytes that wait: nothing more may be told."""
        return size > self._bound

    def taken(self, entries: Sequence[Entry], size: int) -> Taken:
        """What of `entries` is taken beside `size` bytes that wait."""
        if size <= self._bound * TIMELINES:
            return Taken((*self._summed_up(size), *entries), ())
        had_none = not (self._num_timelines or self._num_lines)
        left_out = tuple(path for entry in entries if (path := _timeline(entry)))
        self._num_timelines += len(left_out)
        taken = tuple(entry for entry in entries if not _timeline(entry))
        if size > self._bound * LINES:
            taken = tuple(self._without_prints(entry) for entry in taken)
        if had_none and (self._num_timelines or self._num_lines):
            taken = (
                *taken,
                _said(
                    f"the database takes no writes, and {size:,} bytes wait here: "
                    "timelines, then printed lines, are left out from now on"
                ),
            )
        return Taken(taken, left_out)

    def _summed_up(self, size: int) -> tuple[Entry, ...]:
        if size or not (self._num_timelines or self._num_lines):
            return ()
        told = _said(
            f"left out while the database took no writes: {self._num_timelines:,} timeline(s) "
            f"and {self._num_lines:,} printed line(s)"
        )
        self._num_timelines = self._num_lines = 0
        return (told,)

    def _without_prints(self, entry: Entry) -> Entry:
        if not isinstance(entry, Said):
            return entry
        own: tuple[LogText, ...] = tuple(line for line in entry.lines if line[0] is None)
        self._num_lines += len(entry.lines) - len(own)
        return Said(own)


def _timeline(entry: Entry) -> str:
    """The path of an announced timeline; "" where the entry is something else."""
    event = read_line(entry.line) if isinstance(entry, Told) else None
    return event.path if isinstance(event, Spans) else ""


def _said(text: str) -> Said:
    return Said(((None, time.time(), text),))
