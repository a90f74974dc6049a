"""What a spool holds, and how an entry is written to the disk."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from backend.codec import from_plain
from backend.errors import InvalidInput
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.history.records import LogText


@dataclass(frozen=True, slots=True)
class EventLine:
    """An event, as the rank printed it."""

    line: str


@dataclass(frozen=True, slots=True)
class LogLines:
    """Lines of the run's log."""

    lines: tuple[LogText, ...]


@dataclass(frozen=True, slots=True)
class CopiedCheckpoint:
    """A checkpoint with all of its files in place."""

    mark: Mark
    files: tuple[CheckpointFile, ...]


Entry = EventLine | LogLines | CopiedCheckpoint


def encoded(entry: Entry) -> str:
    """One JSON text in ASCII, whatever characters a rank printed."""
    return json.dumps(asdict(entry))


def decoded(text: str) -> Entry:
    """Raises `InvalidInput` where `encoded` gave no such text."""
    return of_fields(json.loads(text))


def of_fields(fields: dict[str, Any]) -> Entry:
    """The entry that has these fields; raises `InvalidInput`."""
    match fields:
        case {"line": str() as line}:
            return EventLine(line)
        case {"lines": list() as lines}:
            return LogLines(tuple((rank, time, text) for rank, time, text in lines))
        case {"mark": _, "files": _}:
            copied: CopiedCheckpoint = from_plain(CopiedCheckpoint, fields)
            return copied
        case _:
            raise InvalidInput(f"no entry of a spool has the fields {sorted(fields)}")
