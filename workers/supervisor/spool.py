"""What an attempt has to tell the database, on the node's disk until it is there.

When the database does not take it and the spool grows, measured timelines are left out beyond
half of its bound and lines that ranks printed beyond three quarters; losses and other metrics,
files, checkpoints and the agent's own words never are: where they fill it, the ranks wait.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from backend.codec import from_plain
from backend.runs.fence import Fence
from backend.runs.ports import LogText
from workers.supervisor.keeping import Whole


@dataclass(frozen=True, slots=True)
class Told:
    """An event, as the rank wrote it."""

    line: str


@dataclass(frozen=True, slots=True)
class Said:
    """Lines of the log."""

    lines: tuple[LogText, ...]


Entry = Told | Said | Whole
BOUND = 64 << 20
"""Bytes: about 400,000 losses that are told one by one."""
SUFFIX = ".spool"
CHUNK = 1 << 16


class Spool:
    """Numbered entries in their order, in a file that begins with the attempt's fence.

    The file is made with the first entry, cut when all are written, and outlives the process.
    """

    def __init__(self, folder: Path, fence: Fence) -> None:
        self._path = folder / f"{fence.run_id}-{fence.attempt}-{fence.token[:8]}{SUFFIX}"
        self.fence = fence
        self._handle: int | None = None
        self._begin = self._next = self._end = 0
        self._number = self._num_done = 0
        self._first: tuple[int, Entry, int] | None = None

    @staticmethod
    def left(path: Path) -> "Spool | None":
        """What an agent that is dead left in its file; None where that has not even a fence."""
        data = path.read_bytes()
        head, newline, _ = data.partition(b"\n")
        if not newline:
            return None
        found = Spool(path.parent, from_plain(Fence, json.loads(head)))
        found._handle = os.open(path, os.O_RDWR)
        found._begin = found._next = len(head) + 1
        found._end = data.rindex(b"\n") + 1  # a last line that was cut off counts for nothing
        found._number = data.count(b"\n") - 1
        return found

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return self._end - self._next

    def __len__(self) -> int:
        """Entries that wait."""
        return self._number - self._num_done

    def add(self, entries: Sequence[Entry]) -> None:
        """Append them, all or none. Raises `OSError` (a full disk)."""
        if not entries:
            return
        numbered = enumerate(entries, self._number + 1)
        data = b"".join(_encoded(number, entry) for number, entry in numbered)
        self._append(data)
        self._number += len(entries)

    def first(self) -> tuple[int, Entry] | None:
        """The oldest that waits, with its number; None where none does."""
        if self._first is None and self.size and self._handle is not None:
            line = _line(self._handle, self._next, self._end)
            self._first = (*_decoded(line), len(line))
        return self._first and self._first[:2]

    def done(self) -> None:
        """The first is written. What was written is cut off when nothing waits."""
        if self._first is None:
            return
        self._next += self._first[2]
        self._num_done += 1
        self._first = None
        if self._next == self._end and self._handle is not None:
            os.ftruncate(self._handle, self._begin)
            self._next = self._end = self._begin

    def remove(self) -> None:
        """Nobody will ask for it any more."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        self._path.unlink(missing_ok=True)

    def _append(self, data: bytes) -> None:
        handle, start = self._opened(), self._end
        try:
            while data:
                written = os.pwrite(handle, data, self._end)
                self._end, data = self._end + written, data[written:]
        except OSError:
            self._end = start
            with suppress(OSError):
                os.ftruncate(handle, start)
            raise

    def _opened(self) -> int:
        if self._handle is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            head = json.dumps(asdict(self.fence)).encode() + b"\n"
            self._begin = self._next = self._end = os.pwrite(self._handle, head, 0)
        return self._handle


def leftovers(folder: Path) -> list[Path]:
    """The spools in `folder`."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def _encoded(number: int, entry: Entry) -> bytes:
    return json.dumps([number, type(entry).__name__, asdict(entry)]).encode() + b"\n"


def _decoded(line: bytes) -> tuple[int, Entry]:
    number, kind, fields = json.loads(line)
    return number, _read(kind, fields)


def _read(kind: str, fields: Any) -> Entry:
    match kind:
        case "Told":
            return Told(fields["line"])
        case "Said":
            return Said(tuple((rank, time, text) for rank, time, text in fields["lines"]))
        case _:
            return from_plain(Whole, fields)


def _line(handle: int, start: int, end: int) -> bytes:
    """Up to and with the newline."""
    found = b""
    while b"\n" not in found:
        found += os.pread(handle, min(CHUNK, end - start - len(found)), start + len(found))
    return found[: found.index(b"\n") + 1]
