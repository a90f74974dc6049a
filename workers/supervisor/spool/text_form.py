"""Spools of versions that kept them as text: a line with the fence, then one for each entry."""

import json
from pathlib import Path

from backend.codec import from_plain
from backend.runs.attempts.fence import Fence
from workers.supervisor.spool.entries import of_fields
from workers.supervisor.spool.spool import Spool

SUFFIX = ".spool"


def convert(path: Path) -> None:
    """Move the entries of a text file to a spool beside it, under their numbers; may be done
    again. Raises `ValueError`, `TypeError`, `InvalidInput` where it cannot be read."""
    head, *lines = path.read_bytes().split(b"\n")
    if lines:  # the last one is empty or was cut off
        spool = Spool.of(path.parent, from_plain(Fence, json.loads(head)))
        read = [json.loads(line) for line in lines[:-1]]
        spool.insert([(number, of_fields(fields)) for number, _, fields in read])
        spool.close()
    path.unlink()
